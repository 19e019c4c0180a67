package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/state"
	"go.yaml.in/yaml/v4"

	// Each registers its types with the client.
	_ "github.com/siderolabs/talos/pkg/machinery/resources/block"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/config"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/cri"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/files"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/kubeaccess"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/kubespan"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/network"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/perf"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/security"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/siderolink"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/time"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
)

// A resource as it came, and as a real Talos would have sent what the official type understood of it.
type told struct {
	Metadata metadata `json:"metadata"`
	GoType   string   `json:"goType"`
	// What the official type says of itself, as the definition that a machine of this version serves.
	Definition json.RawMessage `json:"definition,omitempty"`
	// The spec as the official type writes it, as JSON.
	Spec     json.RawMessage `json:"spec"`
	Served   encoded         `json:"served"`
	Official encoded         `json:"official"`
}

type metadata struct {
	Namespace   string            `json:"namespace"`
	Type        string            `json:"type"`
	ID          string            `json:"id"`
	Version     string            `json:"version"`
	Owner       string            `json:"owner"`
	Phase       string            `json:"phase"`
	Created     int64             `json:"createdMs"`
	Updated     int64             `json:"updatedMs"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type encoded struct {
	Proto []byte `json:"proto"`
	YAML  string `json:"yaml"`
}

func tell(r resource.Resource) (*told, error) {
	served, ok := r.(*protobuf.Resource)
	if !ok {
		return nil, fmt.Errorf("%s is a %T", r, r)
	}

	wire, err := served.Marshal()
	if err != nil {
		return nil, err
	}

	md := served.Metadata()
	answer := &told{
		Metadata: metadata{
			md.Namespace(), md.Type(), md.ID(), md.Version().String(), md.Owner(), md.Phase().String(),
			md.Created().UnixMilli(), md.Updated().UnixMilli(), md.Labels().Raw(), md.Annotations().Raw(),
		},
		Served: encoding(wire.GetSpec()),
	}

	if resource.IsTombstone(r) || md.Version().String() == "undefined" {
		return answer, nil
	}

	// The client itself does this when it is not told to leave resources as they came.
	typed, err := protobuf.UnmarshalResource(served)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", md, err)
	}

	answer.GoType = fmt.Sprintf("%T", typed)

	official, err := protobuf.FromResource(typed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", md, err)
	}

	again, err := official.Marshal()
	if err != nil {
		return nil, err
	}

	answer.Official = encoding(again.GetSpec())

	if answer.Spec, err = asJSON([]byte(answer.Official.YAML)); err != nil {
		return nil, err
	}

	answer.Definition, err = definitionOf(typed)

	return answer, err
}

func definitionOf(r resource.Resource) (json.RawMessage, error) {
	provider, ok := r.(meta.ResourceDefinitionProvider)
	if !ok {
		return nil, nil
	}

	definition, err := meta.NewResourceDefinition(provider.ResourceDefinition())
	if err != nil {
		return nil, err
	}

	text, err := yaml.Marshal(definition.Spec())
	if err != nil {
		return nil, err
	}

	return asJSON(text)
}

func asJSON(text []byte) (json.RawMessage, error) {
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, err
	}

	return json.Marshal(value)
}

func encoding(spec *v1alpha1.Spec) encoded {
	return encoded{spec.GetProtoSpec(), spec.GetYamlSpec()}
}

// As talosctl finds out what a name means, through the definitions that the machine serves.
func (s *session) kind(ctx context.Context, name string) (resource.Kind, error) {
	namespace := s.namespace

	definition, err := s.client.ResolveResourceKind(ctx, &namespace, name)
	if err != nil {
		return nil, err
	}

	return resource.NewMetadata(namespace, definition.TypedSpec().Type, "", resource.VersionUndefined), nil
}

func cosiGet(ctx context.Context, s *session, args []string) error {
	if len(args)%2 != 0 {
		return errUsage
	}

	for i := 0; i < len(args); i += 2 {
		kind, err := s.kind(ctx, args[i])
		if err != nil {
			return err
		}

		r, err := s.client.COSI.Get(ctx, resource.NewMetadata(kind.Namespace(), kind.Type(), args[i+1], resource.VersionUndefined),
			state.WithGetUnmarshalOptions(state.WithSkipProtobufUnmarshal()))
		if err != nil {
			return err
		}

		if err := encodeResource(r); err != nil {
			return err
		}
	}

	return nil
}

func cosiList(ctx context.Context, s *session, args []string) error {
	for _, name := range args {
		kind, err := s.kind(ctx, name)
		if err != nil {
			return err
		}

		list, err := s.client.COSI.List(ctx, kind, state.WithListUnmarshalOptions(state.WithSkipProtobufUnmarshal()))
		if err != nil {
			return err
		}

		for _, r := range list.Items {
			if err := encodeResource(r); err != nil {
				return err
			}
		}
	}

	return nil
}

func encodeResource(r resource.Resource) error {
	answer, err := tell(r)
	if err != nil {
		return err
	}

	return out.Encode(answer)
}

func cosiWatch(ctx context.Context, s *session, args []string) error {
	events := make(chan state.Event)

	for _, name := range args {
		kind, err := s.kind(ctx, name)
		if err != nil {
			return err
		}

		if s.id != "" {
			err = s.client.COSI.Watch(ctx, resource.NewMetadata(kind.Namespace(), kind.Type(), s.id, resource.VersionUndefined), events,
				state.WithWatchUnmarshalOptions(state.WithSkipProtobufUnmarshal()))
		} else {
			err = s.client.COSI.WatchKind(ctx, kind, events,
				state.WithBootstrapContents(true), state.WithWatchKindUnmarshalOptions(state.WithSkipProtobufUnmarshal()))
		}

		if err != nil {
			return err
		}
	}

	for missing := len(args); missing > 0 || !s.initial; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-events:
			if event.Type == state.Errored {
				return event.Error
			}

			// Of one resource there is one first event, of a type there are many and a last.
			if s.id != "" || event.Type == state.Bootstrapped {
				missing--
			}

			if err := encodeEvent(event); err != nil {
				return err
			}
		}
	}

	return nil
}

func encodeEvent(event state.Event) error {
	answer := map[string]any{"event": event.Type.String(), "hasBookmark": event.Bookmark != nil}

	for name, r := range map[string]resource.Resource{"resource": event.Resource, "old": event.Old} {
		if r == nil {
			continue
		}

		told, err := tell(r)
		if err != nil {
			return err
		}

		answer[name] = told
	}

	return out.Encode(answer)
}
