package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	jsonpatch "github.com/evanphx/json-patch"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
)

// A configuration, the patches for it, and what somebody else made of them.
type patchQuestion struct {
	Config  string   `json:"config"`
	Patches []string `json:"patches"`
	Other   *string  `json:"other"`
}

// Both results as the official types write them, so that two texts are the same where the documents are.
type patchAnswer struct {
	Patched      string `json:"patched,omitempty"`
	Refused      string `json:"refused,omitempty"`
	Other        string `json:"other,omitempty"`
	OtherRefused string `json:"otherRefused,omitempty"`
}

// Reads questions from stdin, one JSON value after another, and answers each with a line.
func patchConfigs() error {
	in := json.NewDecoder(os.Stdin)

	for {
		var question patchQuestion

		if err := in.Decode(&question); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}

			return err
		}

		var answer patchAnswer

		answer.Patched, answer.Refused = attempt(func() (string, error) { return patched(question.Config, question.Patches) })

		if question.Other != nil {
			answer.Other, answer.OtherRefused = attempt(func() (string, error) { return canonical([]byte(*question.Other)) })
		}

		if err := out.Encode(answer); err != nil {
			return err
		}
	}
}

// The machinery panics where it meets what it did not think of.
func attempt(do func() (string, error)) (text, problem string) {
	defer func() {
		if r := recover(); r != nil {
			text, problem = "", fmt.Sprintf("panic: %v", r)
		}
	}()

	text, err := do()
	if err != nil {
		return "", err.Error()
	}

	return text, ""
}

func patched(text string, texts []string) (string, error) {
	var patches []configpatcher.Patch

	for _, one := range texts {
		patch, err := configpatcher.LoadPatch([]byte(one))
		if err != nil {
			return "", err
		}

		if list, ok := patch.(jsonpatch.Patch); ok && len(list) == 0 {
			return "", errors.New("an empty list of operations")
		}

		patches = append(patches, patch)
	}

	result, err := configpatcher.Apply(configpatcher.WithBytes([]byte(text)), patches)
	if err != nil {
		return "", err
	}

	bytes, err := result.Bytes()
	if err != nil {
		return "", err
	}

	return canonical(bytes)
}

func canonical(text []byte) (string, error) {
	provider, err := configloader.NewFromBytes(text)
	if err != nil {
		return "", err
	}

	return provider.EncodeString(encoder.WithComments(encoder.CommentsDisabled))
}

type generated struct {
	Contract string `json:"contract"`
	Type     string `json:"type"`
	Config   string `json:"config"`
}

// Configurations as `talosctl gen config` of these versions of Talos makes them.
func generateConfigs(contracts []string) error {
	for _, version := range contracts {
		contract, err := config.ParseContractFromVersion(version)
		if err != nil {
			return err
		}

		bundle, err := secrets.NewBundle(secrets.NewFixedClock(time.Unix(1_700_000_000, 0)), contract)
		if err != nil {
			return err
		}

		input, err := generate.NewInput("test", "https://10.0.0.1:6443", "1.33.0",
			generate.WithVersionContract(contract),
			generate.WithSecretsBundle(bundle),
			generate.WithInstallDisk("/dev/sda"),
			generate.WithRegistryMirror("docker.io", "https://mirror.example.org"),
			generate.WithAdditionalSubjectAltNames([]string{"talos.example.org"}),
		)
		if err != nil {
			return err
		}

		for _, machineType := range []machine.Type{machine.TypeControlPlane, machine.TypeWorker} {
			provider, err := input.Config(machineType)
			if err != nil {
				return err
			}

			text, err := provider.EncodeString(encoder.WithComments(encoder.CommentsDocs))
			if err != nil {
				return err
			}

			if err := out.Encode(generated{version, machineType.String(), text}); err != nil {
				return err
			}
		}
	}

	return nil
}
