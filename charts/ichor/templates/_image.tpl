{{- define "ichor.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is empty: name where the image of Ichor was pushed to, for example --set image.repository=registry.example.org/ichor" $image.repository -}}
{{- $repository }}:{{ $image.tag | default .Chart.AppVersion }}{{ with $image.digest }}@{{ . }}{{ end }}
{{- end -}}
