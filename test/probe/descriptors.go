package main

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/cosi-project/runtime/api/v1alpha1"
	_ "github.com/siderolabs/talos/pkg/machinery/api/cluster"
	_ "github.com/siderolabs/talos/pkg/machinery/api/common"
	_ "github.com/siderolabs/talos/pkg/machinery/api/inspect"
	_ "github.com/siderolabs/talos/pkg/machinery/api/machine"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/config"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/cluster"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/cri"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/enums"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/etcd"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/extensions"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/files"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/hardware"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/k8s"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/kubeaccess"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/kubespan"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/network"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/perf"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/proto"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/runtime"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/secrets"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/security"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/siderolink"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/time"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/v1alpha1"
	_ "github.com/siderolabs/talos/pkg/machinery/api/resource/network"
	_ "github.com/siderolabs/talos/pkg/machinery/api/security"
	_ "github.com/siderolabs/talos/pkg/machinery/api/storage"
	_ "github.com/siderolabs/talos/pkg/machinery/api/time"
)

// What matters on the wire, by full names.
type descriptors struct {
	Messages map[string]map[string]field  `json:"messages"`
	Enums    map[string]map[string]int32  `json:"enums"`
	Services map[string]map[string]method `json:"services"`
}

type field struct {
	Number int32 `json:"number"`
	// `string`, the full name of a message or enum, or `map<key, value>`.
	Type string `json:"type"`
	// `optional` only where absence is told apart from the zero value.
	Label  string `json:"label"`
	Oneof  string `json:"oneof,omitempty"`
	Packed bool   `json:"packed,omitempty"`
}

type method struct {
	Input  string `json:"input"`
	Output string `json:"output"`
	Kind   string `json:"kind"`
}

func isTalos(pkg string) bool {
	for _, one := range []string{"common", "machine", "storage", "time", "inspect", "cluster", "securityapi", "google.rpc", "resource.config", "resource.network"} {
		if pkg == one {
			return true
		}
	}

	return strings.HasPrefix(pkg, "cosi.resource") || strings.HasPrefix(pkg, "talos.resource.definitions.")
}

func describe() descriptors {
	all := descriptors{map[string]map[string]field{}, map[string]map[string]int32{}, map[string]map[string]method{}}

	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if isTalos(string(file.Package())) {
			all.addMessages(file.Messages())
			all.addEnums(file.Enums())
			all.addServices(file.Services())
		}

		return true
	})

	return all
}

func (all descriptors) addMessages(messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		message := messages.Get(i)
		if message.IsMapEntry() {
			continue
		}

		fields := map[string]field{}
		for j := range message.Fields().Len() {
			fields[string(message.Fields().Get(j).Name())] = describeField(message.Fields().Get(j))
		}

		all.Messages[string(message.FullName())] = fields

		all.addMessages(message.Messages())
		all.addEnums(message.Enums())
	}
}

func describeField(f protoreflect.FieldDescriptor) field {
	described := field{Number: int32(f.Number()), Type: typeOf(f), Label: "single", Packed: f.IsPacked()}

	if oneof := f.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
		described.Oneof = string(oneof.Name())
	}

	switch {
	case f.IsMap():
		described.Label = "map"
		described.Type = "map<" + typeOf(f.MapKey()) + ", " + typeOf(f.MapValue()) + ">"
	case f.IsList():
		described.Label = "repeated"
	case f.HasOptionalKeyword():
		described.Label = "optional"
	}

	return described
}

func typeOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return string(f.Message().FullName())
	case f.Enum() != nil:
		return string(f.Enum().FullName())
	default:
		return f.Kind().String()
	}
}

func (all descriptors) addEnums(enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		enum := enums.Get(i)
		values := map[string]int32{}

		for j := range enum.Values().Len() {
			values[string(enum.Values().Get(j).Name())] = int32(enum.Values().Get(j).Number())
		}

		all.Enums[string(enum.FullName())] = values
	}
}

func (all descriptors) addServices(services protoreflect.ServiceDescriptors) {
	for i := range services.Len() {
		service := services.Get(i)
		methods := map[string]method{}

		for j := range service.Methods().Len() {
			m := service.Methods().Get(j)
			methods[string(m.Name())] = method{string(m.Input().FullName()), string(m.Output().FullName()), kindOf(m)}
		}

		all.Services[string(service.FullName())] = methods
	}
}

func kindOf(m protoreflect.MethodDescriptor) string {
	switch {
	case m.IsStreamingClient() && m.IsStreamingServer():
		return "bidi_streaming"
	case m.IsStreamingServer():
		return "server_streaming"
	case m.IsStreamingClient():
		return "client_streaming"
	default:
		return "unary"
	}
}
