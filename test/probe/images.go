package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func (s *session) instance() (*common.ContainerdInstance, error) {
	driver, knowsDriver := common.ContainerDriver_value[s.driver]
	namespace, knowsNamespace := common.ContainerdNamespace_value[s.containerd]

	if !knowsDriver || !knowsNamespace {
		return nil, fmt.Errorf("no such containerd: %s %s", s.driver, s.containerd)
	}

	return &common.ContainerdInstance{
		Driver:    common.ContainerDriver(driver),
		Namespace: common.ContainerdNamespace(namespace),
	}, nil
}

func listImages(ctx context.Context, s *session, _ []string) error {
	instance, err := s.instance()
	if err != nil {
		return err
	}

	stream, err := s.client.ImageClient.List(ctx, &machine.ImageServiceListRequest{Containerd: instance})

	return encodeStream(stream, err)
}

func pullImage(ctx context.Context, s *session, args []string) error {
	instance, err := s.instance()
	if err != nil {
		return err
	}

	stream, err := s.client.ImageClient.Pull(ctx, &machine.ImageServicePullRequest{Containerd: instance, ImageRef: args[0]})

	return encodeStream(stream, err)
}

func upgrade(ctx context.Context, s *session, args []string) error {
	instance, err := s.instance()
	if err != nil {
		return err
	}

	stream, err := s.client.LifecycleClient.Upgrade(ctx, &machine.LifecycleServiceUpgradeRequest{
		Containerd: instance,
		Source:     &machine.InstallArtifactsSource{ImageName: args[0]},
	})

	return encodeStream(stream, err)
}

// Every message of a stream as it comes.
func encodeStream[T any, M interface {
	*T
	proto.Message
}](stream grpc.ServerStreamingClient[T], err error) error {
	if err != nil {
		return err
	}

	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		if err := encodeProto(M(message)); err != nil {
			return err
		}
	}
}

func encodeProto(message proto.Message) error {
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(message)
	if err != nil {
		return err
	}

	// Compacts it: protojson varies its blanks on purpose.
	return out.Encode(rawJSON(text))
}

type rawJSON []byte

func (raw rawJSON) MarshalJSON() ([]byte, error) { return raw, nil }
