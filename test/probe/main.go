// The official Go client of Talos 1.13.9 as a program that tests run: what its types are on the wire (descriptors), what its
// configurations are and how it patches them (config-...), and what it makes of a machine's answers. Each answer is one line of JSON on stdout; where a call fails, the last line is {"error":{"code":…,"message":…}} and
// the exit code is 1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const usage = `usage: talos-probe descriptors
       talos-probe config-schema KIND...
       talos-probe config-generate VERSION...
       talos-probe config-patch <QUESTIONS
       talos-probe [flags] version
       talos-probe [flags] cosi-get TYPE ID...
       talos-probe [flags] cosi-list TYPE...
       talos-probe [flags] cosi-watch TYPE...
       talos-probe [flags] pull IMAGE
       talos-probe [flags] upgrade IMAGE
       talos-probe [flags] image-list`

type settings struct {
	talosconfig string
	node        string
	namespace   string
	driver      string
	containerd  string
	id          string
	initial     bool
	timeout     time.Duration
}

type session struct {
	settings
	client *client.Client
}

type command struct {
	run func(context.Context, *session, []string) error
	// How many it takes, at least and at most.
	args [2]int
}

const many = 1000

var commands = map[string]command{
	"version":    {showVersion, [2]int{0, 0}},
	"cosi-get":   {cosiGet, [2]int{2, many}},
	"cosi-list":  {cosiList, [2]int{1, many}},
	"cosi-watch": {cosiWatch, [2]int{1, many}},
	"pull":       {pullImage, [2]int{1, 1}},
	"upgrade":    {upgrade, [2]int{1, 1}},
	"image-list": {listImages, [2]int{0, 0}},
}

// What needs no machine.
var local = map[string]func(args []string) error{
	"descriptors":     func([]string) error { return out.Encode(describe()) },
	"config-schema":   describeConfigs,
	"config-generate": generateConfigs,
	"config-patch":    func([]string) error { return patchConfigs() },
}

var out = json.NewEncoder(os.Stdout)

func main() {
	var s settings

	flag.StringVar(&s.talosconfig, "talosconfig", os.Getenv("TALOSCONFIG"), "path of the talosconfig")
	flag.StringVar(&s.node, "node", "", "the machine to ask, through the endpoint; empty: the endpoint itself")
	flag.StringVar(&s.namespace, "namespace", "", "of resources; empty: what their definition says")
	flag.StringVar(&s.driver, "driver", "CRI", "of containerd: CONTAINERD or CRI")
	flag.StringVar(&s.containerd, "containerd", "NS_SYSTEM", "namespace of containerd: NS_SYSTEM, NS_CRI or NS_UNKNOWN")
	flag.StringVar(&s.id, "id", "", "watch this resource only")
	flag.BoolVar(&s.initial, "initial", false, "end a watch when all that is there has come; else when killed")
	flag.DurationVar(&s.timeout, "timeout", time.Minute, "of all calls together")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, usage)
		flag.PrintDefaults()
	}
	flag.Parse()

	if err := run(s, flag.Args()); err != nil {
		fail(err)
	}
}

func run(s settings, args []string) error {
	if len(args) == 0 {
		return errUsage
	}

	if do, ok := local[args[0]]; ok {
		return do(args[1:])
	}

	chosen, ok := commands[args[0]]
	if n := len(args) - 1; !ok || n < chosen.args[0] || n > chosen.args[1] {
		return errUsage
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()

	c, err := client.New(ctx, client.WithConfigFromFile(s.talosconfig))
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck

	if s.node != "" {
		ctx = client.WithNode(ctx, s.node)
	}

	return chosen.run(ctx, &session{s, c}, args[1:])
}

var errUsage = errors.New("usage")

func fail(err error) {
	if errors.Is(err, errUsage) {
		flag.Usage()
		os.Exit(2)
	}

	said := map[string]string{"code": status.Code(err).String(), "message": err.Error()}

	if s, ok := status.FromError(err); ok {
		said["message"] = s.Message()
	}

	// The client of COSI wraps this one in an error of its own, which hides the status.
	if state.IsNotFoundError(err) {
		said["code"] = codes.NotFound.String()
	}

	out.Encode(map[string]any{"error": said}) //nolint:errcheck
	os.Exit(1)
}

func showVersion(ctx context.Context, s *session, _ []string) error {
	answer, err := s.client.Version(ctx)
	if err != nil {
		return err
	}

	for _, message := range answer.GetMessages() {
		if err := encodeProto(message); err != nil {
			return err
		}
	}

	return nil
}
