{{- /*
The resource types of the chart that the cluster has in another form: Helm writes them when it installs and never again. Without a cluster (helm
template) none is found. Here is what would leave nothing to read stored objects with; what merely lacks fields is told by NOTES.txt.
*/}}
{{- define "ichor.refuseOtherVersions" -}}
{{- range $path, $_ := .Files.Glob "crds/*.yaml" }}
{{- $wanted := $.Files.Get $path | fromYaml }}
{{- $now := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $wanted.metadata.name }}
{{- if $now }}
{{- $known := list }}
{{- range $wanted.spec.versions }}{{ $known = append $known .name }}{{ end }}
{{- range $now.status.storedVersions }}
{{- if not (has . $known) }}
{{- fail (printf "%s: objects are stored as %s, which Ichor %s does not know; it could not read them. Install a chart that knows both versions" $wanted.metadata.name . $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- $served := list }}
{{- range $now.spec.versions }}{{ if .served }}{{ $served = append $served .name }}{{ end }}{{ end }}
{{- range $known }}
{{- if not (has . $served) }}
{{- fail (printf "%s: this cluster does not serve %s, which Ichor %s needs. First bring the resource types up to date: ichor install --crds-only" $wanted.metadata.name . $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "ichor.oldTypes" -}}
{{- range $path, $_ := .Files.Glob "crds/*.yaml" }}
{{- $wanted := $.Files.Get $path | fromYaml }}
{{- $now := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $wanted.metadata.name }}
{{- if $now }}
{{- if ne (toJson $now.spec.versions) (toJson $wanted.spec.versions) }}
  {{ $wanted.metadata.name }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
