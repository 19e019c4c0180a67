package main

import (
	textencoding "encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"go.yaml.in/yaml/v4"
)

// The types of machine configurations as data: what fields there are, and all that decides how two values of one merge.
//
// A type is written in a few signs: `*T` may be absent, `[]T` is a list, `{}T` a mapping, `=T` replaces instead of merging, `@NAME` is a
// struct of the table. `[NAME]T` and `{NAME}T` merge in a way of their own, which the type of that name has in Go. The rest are scalars:
// `string`, `bool`, `number`, `any`, `bytes`; `word(ZERO)` is read from text and does not override where it is ZERO; a `whole` value
// overrides even where it is not there; an `opaque` one cannot be merged with another; `url` and `size` are what Talos has for these.
type configSchema struct {
	Documents map[string]documentSchema    `json:"documents"`
	Types     map[string]map[string]string `json:"types"`
}

type documentSchema struct {
	Type      string   `json:"type"`
	Named     bool     `json:"named,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
	// Where Talos itself sees a secret; `*` stands for each key of a mapping and each item of a list.
	Secrets []string `json:"secrets,omitempty"`
}

type merger interface{ Merge(other any) error }

var (
	mergerType          = reflect.TypeFor[merger]()
	textUnmarshalerType = reflect.TypeFor[textencoding.TextUnmarshaler]()
	stringerType        = reflect.TypeFor[fmt.Stringer]()
	yamlUnmarshalerType = reflect.TypeFor[interface {
		UnmarshalYAML(unmarshal func(any) error) error
	}]()
)

func describeConfigs(kinds []string) error {
	schema := configSchema{map[string]documentSchema{}, map[string]map[string]string{}}

	for _, kind := range append([]string{""}, kinds...) {
		text := "machine: {}"
		if kind != "" {
			text = "apiVersion: v1alpha1\nkind: " + kind
		}

		provider, err := configloader.NewFromBytes([]byte(text))
		if err != nil {
			return fmt.Errorf("kind %q: %w", kind, err)
		}

		document := provider.Documents()[0]
		typ := reflect.TypeOf(document).Elem()
		described := documentSchema{Type: schema.describe(typ)}

		if named, ok := document.(config.NamedDocument); ok {
			described.Named = true

			if nameOf(typ) != named.Name() {
				return fmt.Errorf("kind %q has its name elsewhere", kind)
			}
		}

		if conflicting, ok := document.(config.ConflictingDocument); ok {
			described.Conflicts = conflicting.ConflictsWithKinds()
		}

		if secret, ok := document.(config.SecretDocument); ok {
			fill(reflect.ValueOf(document).Elem(), 0)
			secret.Redact(redacted)
			collect(reflect.ValueOf(document).Elem(), nil, func(path string) { described.Secrets = append(described.Secrets, path) })
			slices.Sort(described.Secrets)
			described.Secrets = slices.Compact(described.Secrets)
		}

		schema.Documents[kind] = described
	}

	return out.Encode(schema)
}

// What a document calls itself when it was just made.
func nameOf(typ reflect.Type) string {
	document := reflect.New(typ)

	for _, field := range yamlFields(typ) {
		if field.name == "name" {
			return document.Elem().FieldByIndex(field.index).String()
		}
	}

	return "?"
}

type yamlField struct {
	name  string
	index []int
	typ   reflect.Type
	tag   reflect.StructTag
}

// Those of embedded structs belong to the struct that embeds them. An inlined mapping has no name.
func yamlFields(typ reflect.Type) []yamlField {
	var fields []yamlField

	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")

		switch {
		case !field.IsExported(), name == "-":
		case options == "inline" && field.Type.Kind() == reflect.Struct:
			for _, inner := range yamlFields(field.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		case options == "inline":
			fields = append(fields, yamlField{"", []int{i}, field.Type, field.Tag})
		default:
			if name == "" {
				name = strings.ToLower(field.Name)
			}

			fields = append(fields, yamlField{name, []int{i}, field.Type, field.Tag})
		}
	}

	return fields
}

func (schema *configSchema) describe(typ reflect.Type) string {
	isMerger := reflect.PointerTo(typ).Implements(mergerType)

	switch {
	case typ.Kind() == reflect.Pointer:
		return "*" + schema.describe(typ.Elem())
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Uint8:
		return "bytes"
	case typ.Kind() == reflect.Slice && isMerger:
		return "[" + typ.Name() + "]" + schema.describe(typ.Elem())
	case typ.Kind() == reflect.Slice:
		return "[]" + schema.describe(typ.Elem())
	case typ.Kind() == reflect.Map && isMerger:
		return "{" + typ.Name() + "}" + schema.describe(typ.Elem())
	case typ.Kind() == reflect.Map:
		return "{}" + schema.describe(typ.Elem())
	case typ.Kind() == reflect.Interface:
		return "any"
	case typ.Kind() == reflect.Struct:
		return schema.describeStruct(typ, isMerger)
	case typ.Kind() == reflect.Bool:
		return "bool"
	case reflect.PointerTo(typ).Implements(textUnmarshalerType), reflect.PointerTo(typ).Implements(yamlUnmarshalerType), typ.Implements(stringerType):
		zero, err := yaml.Marshal(reflect.Zero(typ).Interface())
		if err != nil {
			return "word()"
		}

		return "word(" + strings.Trim(strings.TrimSpace(string(zero)), `"`) + ")"
	case typ.Kind() == reflect.String:
		return "string"
	default:
		return "number"
	}
}

func (schema *configSchema) describeStruct(typ reflect.Type, isMerger bool) string {
	name := typ.String()
	fields := yamlFields(typ)

	switch {
	case isMerger, strings.HasPrefix(typ.Name(), "PEMEncoded"):
		// Of a certificate and its key, what is not there is empty when it is read, which is not the same to Go as nothing.
		return "whole"
	case typ.Name() == "Size" && reflect.PointerTo(typ).Implements(textUnmarshalerType):
		return "size"
	case typ.NumField() == 1 && typ.Field(0).Type.String() == "*url.URL":
		return "url"
	case isOpaque(typ), reflect.PointerTo(typ).Implements(yamlUnmarshalerType):
		return "opaque"
	case len(fields) == 1 && fields[0].name == "":
		return schema.describe(fields[0].typ)
	}

	if _, ok := schema.Types[name]; ok {
		return "@" + name
	}

	described := map[string]string{}
	schema.Types[name] = described

	for _, field := range fields {
		inner := schema.describe(field.typ)
		if slices.Contains(strings.Split(field.tag.Get("merge"), ","), "replace") {
			inner = "=" + inner
		}

		described[field.name] = inner
	}

	return "@" + name
}

// What holds something that reflection may not set.
func isOpaque(typ reflect.Type) bool {
	for i := range typ.NumField() {
		field := typ.Field(i)
		if !field.IsExported() || field.Anonymous && field.Type.Kind() == reflect.Struct && isOpaque(field.Type) {
			return true
		}
	}

	return false
}

const redacted = "REDACTED"

// Puts something everywhere, so that there is something to hide.
func fill(value reflect.Value, depth int) {
	if !value.CanSet() || depth > 20 {
		return
	}

	switch value.Kind() { //nolint:exhaustive
	case reflect.String:
		value.SetString("x")
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), depth+1)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), depth+1)
	case reflect.Uint8:
		value.SetUint('x')
	case reflect.Map:
		if value.Type().Key().Kind() != reflect.String {
			return
		}

		item := reflect.New(value.Type().Elem()).Elem()
		fill(item, depth+1)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(reflect.ValueOf("x").Convert(value.Type().Key()), item)
	case reflect.Struct:
		for i := range value.NumField() {
			fill(value.Field(i), depth+1)
		}
	}
}

// The places that were redacted.
func collect(value reflect.Value, path []string, found func(path string)) {
	switch value.Kind() { //nolint:exhaustive
	case reflect.String:
		if value.String() == redacted {
			found(strings.Join(path, "."))
		}
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			collect(value.Elem(), path, found)
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			if string(value.Bytes()) == redacted {
				found(strings.Join(path, "."))
			}

			return
		}

		for i := range value.Len() {
			collect(value.Index(i), append(path, "*"), found)
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			collect(value.MapIndex(key), append(path, "*"), found)
		}
	case reflect.Struct:
		for _, field := range yamlFields(value.Type()) {
			inner := path
			if field.name != "" {
				inner = append(slices.Clone(path), field.name)
			}

			collect(value.FieldByIndex(field.index), inner, found)
		}
	}
}
