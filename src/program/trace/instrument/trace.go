// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.
// Without the environment variable OPDEV_TRACE it does nothing but give client-go a name it may be asked for.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Kubeconfigs that name this auth provider put every client of the process behind the tracing transport. It is
// registered while variables are set, for clients may be made before any init function runs.
var _ = rest.RegisterAuthProviderPlugin("opdev", opdevTraceAuthProvider)

// How much was added to the build; the other files raise it.
var opdevTraceRung = "header"

// What the other files add. Each is set in an init function and called once main runs.
var (
	// Which pass a call belongs to, and how that is known: "ctx" or "goroutine".
	opdevTraceWho = func(ctx context.Context) (string, string) {
		return string(controller.ReconcileIDFromContext(ctx)), "ctx"
	}
	opdevTraceReadCache     = func(*manager.Options) {}
	opdevTraceReadInformers = func(*manager.Options) {}
	opdevTraceWrapManager   = func(m manager.Manager) manager.Manager { return m }
	opdevTraceObey          = func(opdevTraceCommand) {}
)

// Whether somebody listens. Set while variables are, so that every init function knows.
var opdevTraceConn, opdevTraceOn = opdevTraceConnect()

func opdevTraceConnect() (net.Conn, bool) {
	socket := os.Getenv("OPDEV_TRACE")
	if socket == "" {
		return nil, false
	}
	conn, err := net.Dial("unix", socket)
	return conn, err == nil
}

// Records that wait to be written. A full channel drops them and counts.
var (
	opdevTraceRecords chan any
	opdevTraceDropped atomic.Uint64
)

type opdevTraceCommand struct {
	Do         string `json:"do"`
	Controller string `json:"controller"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	// Why it is asked for; empty where a person asks.
	Why string `json:"why"`
}

type opdevTraceHello struct {
	Record            string `json:"record"`
	Pid               int    `json:"pid"`
	Rung              string `json:"rung"`
	Go                string `json:"go"`
	ControllerRuntime string `json:"controllerRuntime"`
	ClientGo          string `json:"clientGo"`
}

type opdevTraceManagerMade struct {
	Record string   `json:"record"`
	Set    []string `json:"set"`
}

type opdevTraceLost struct {
	Record  string `json:"record"`
	Records uint64 `json:"records"`
}

func init() {
	if !opdevTraceOn {
		return
	}
	options := opdevTraceReadOptions()
	opdevTraceRecords = make(chan any, 8192)
	go opdevTraceWrite(opdevTraceConn)
	go opdevTraceListen(opdevTraceConn, options.ExitWithSocket)
	opdevTraceWrapConfigs()
	newManager := ctrl.NewManager
	ctrl.NewManager = func(config *rest.Config, o manager.Options) (manager.Manager, error) {
		config = rest.CopyConfig(config)
		config.Wrap(opdevTraceTransportOf)
		opdevTraceSend(opdevTraceManagerMade{"manager", options.apply(&o)})
		opdevTraceReadCache(&o)
		opdevTraceReadInformers(&o)
		m, err := newManager(config, o)
		if err != nil {
			return m, err
		}
		return opdevTraceWrapManager(m), nil
	}
}

// Written once all init functions have run, so that the rung is right.
func opdevTraceSayHello() opdevTraceHello {
	hello := opdevTraceHello{Record: "hello", Pid: os.Getpid(), Rung: opdevTraceRung, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "sigs.k8s.io/controller-runtime":
				hello.ControllerRuntime = m.Version
			case "k8s.io/client-go":
				hello.ClientGo = m.Version
			}
		}
	}
	return hello
}

// Never blocks: a record without room is dropped and counted. Says whether there was room.
func opdevTraceSend(record any) bool {
	select {
	case opdevTraceRecords <- record:
		return true
	default:
		opdevTraceDropped.Add(1)
		return false
	}
}

func opdevTraceWrite(conn net.Conn) {
	out := bufio.NewWriterSize(conn, 64*1024)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	// Other files are still being initialized: the first record, or a while, says that main runs.
	select {
	case record := <-opdevTraceRecords:
		_ = lines.Encode(opdevTraceSayHello())
		_ = lines.Encode(record)
	case <-time.After(300 * time.Millisecond):
		_ = lines.Encode(opdevTraceSayHello())
	}
	_ = out.Flush()
	for record := range opdevTraceRecords {
		if lost := opdevTraceDropped.Swap(0); lost > 0 {
			_ = lines.Encode(opdevTraceLost{"dropped", lost})
		}
		_ = lines.Encode(record)
		if len(opdevTraceRecords) == 0 && out.Flush() != nil {
			break
		}
	}
	// Nobody listens any more: what comes is dropped.
	_ = conn.Close()
}

func opdevTraceListen(conn net.Conn, exit bool) {
	commands := json.NewDecoder(conn)
	for {
		var command opdevTraceCommand
		if commands.Decode(&command) != nil {
			break
		}
		opdevTraceObey(command)
	}
	if exit {
		// opdev is gone without a word; it must not leave this process behind.
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(syscall.SIGTERM)
		}
	}
}

type opdevTraceOptions struct {
	LeaderElection          *bool   `json:"leaderElection"`
	MetricsBindAddress      *string `json:"metricsBindAddress"`
	HealthProbeBindAddress  *string `json:"healthProbeBindAddress"`
	GracefulShutdownTimeout *int64  `json:"gracefulShutdownTimeout"`
	WebhookPort             *int    `json:"webhookPort"`
	WebhookCertDir          *string `json:"webhookCertDir"`
	ExitWithSocket          bool    `json:"exitWithSocket"`
}

func opdevTraceReadOptions() (options opdevTraceOptions) {
	_ = json.Unmarshal([]byte(os.Getenv("OPDEV_MANAGER")), &options)
	return options
}

// Sets what is wanted, and says what differs from what the program wanted.
func (w opdevTraceOptions) apply(o *manager.Options) []string {
	set := []string{}
	if w.LeaderElection != nil && o.LeaderElection != *w.LeaderElection {
		o.LeaderElection = *w.LeaderElection
		if *w.LeaderElection {
			set = append(set, "leaderElection=true")
		} else {
			set = append(set, "leaderElection=false")
		}
	}
	if w.MetricsBindAddress != nil && o.Metrics.BindAddress != *w.MetricsBindAddress {
		o.Metrics.BindAddress = *w.MetricsBindAddress
		set = append(set, "metricsBindAddress="+*w.MetricsBindAddress)
	}
	if w.HealthProbeBindAddress != nil && o.HealthProbeBindAddress != *w.HealthProbeBindAddress {
		o.HealthProbeBindAddress = *w.HealthProbeBindAddress
		set = append(set, "healthProbeBindAddress="+*w.HealthProbeBindAddress)
	}
	if w.GracefulShutdownTimeout != nil && o.GracefulShutdownTimeout == nil {
		timeout := time.Duration(*w.GracefulShutdownTimeout) * time.Millisecond
		o.GracefulShutdownTimeout = &timeout
		set = append(set, "gracefulShutdownTimeout="+timeout.String())
	}
	if w.WebhookPort == nil && w.WebhookCertDir == nil {
		return set
	}
	if o.WebhookServer == nil {
		o.WebhookServer = webhook.NewServer(webhook.Options{})
	}
	// A server of the program's own type stays as it is.
	if server, ok := o.WebhookServer.(*webhook.DefaultServer); ok {
		// A server takes 0 for its usual port.
		if w.WebhookPort != nil && (*w.WebhookPort == 0 || server.Options.Port != *w.WebhookPort) {
			server.Options.Port = *w.WebhookPort
			if server.Options.Port == 0 {
				server.Options.Port = opdevTraceFreePort()
			}
			set = append(set, "webhookPort")
		}
		if w.WebhookCertDir != nil && !opdevTraceHasCertificate(server.Options) {
			server.Options.CertDir, server.Options.CertName, server.Options.KeyName = *w.WebhookCertDir, "tls.crt", "tls.key"
			set = append(set, "webhookCertDir="+*w.WebhookCertDir)
		}
	}
	return set
}

// A port that nobody listens on; 0 where there is none.
func opdevTraceFreePort() int {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0
	}
	defer listener.Close()
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		return address.Port
	}
	return 0
}

// Whether the program's own folder has a certificate: flags may name one that is mounted in a pod only.
func opdevTraceHasCertificate(o webhook.Options) bool {
	if o.CertDir == "" {
		return false
	}
	for _, file := range [][2]string{{o.CertName, "tls.crt"}, {o.KeyName, "tls.key"}} {
		name := file[0]
		if name == "" {
			name = file[1]
		}
		if _, err := os.Stat(filepath.Join(o.CertDir, name)); err != nil {
			return false
		}
	}
	return true
}

// Clients that are made from these configurations carry the id, too, whatever kubeconfig they read.
func opdevTraceWrapConfigs() {
	getConfig, getConfigOrDie := ctrl.GetConfig, ctrl.GetConfigOrDie
	ctrl.GetConfig = func() (*rest.Config, error) {
		config, err := getConfig()
		if config != nil {
			config.Wrap(opdevTraceTransportOf)
		}
		return config, err
	}
	ctrl.GetConfigOrDie = func() *rest.Config {
		config := getConfigOrDie()
		config.Wrap(opdevTraceTransportOf)
		return config
	}
}

type opdevTraceAuth struct{}

func opdevTraceAuthProvider(string, map[string]string, rest.AuthProviderConfigPersister) (rest.AuthProvider, error) {
	return opdevTraceAuth{}, nil
}

func (opdevTraceAuth) Login() error { return nil }
func (opdevTraceAuth) WrapTransport(inner http.RoundTripper) http.RoundTripper {
	return opdevTraceTransportOf(inner)
}

const opdevTraceHeader = "X-Opdev-Reconcile"

func opdevTraceTransportOf(inner http.RoundTripper) http.RoundTripper {
	return opdevTraceTransport{inner}
}

// Puts the id of the pass on each call, where there is one.
type opdevTraceTransport struct{ inner http.RoundTripper }

func (t opdevTraceTransport) WrappedRoundTripper() http.RoundTripper { return t.inner }

func (t opdevTraceTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !opdevTraceOn || r.Header.Get(opdevTraceHeader) != "" {
		return t.inner.RoundTrip(r)
	}
	id, how := opdevTraceWho(r.Context())
	if id == "" || how == "goroutine" && opdevTraceOfInformer(r) {
		return t.inner.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	mark := id + " " + how
	if r.Method != http.MethodGet {
		if place := opdevTracePlace(); place != "" {
			mark += " " + place
		}
	}
	r.Header.Set(opdevTraceHeader, mark)
	return t.inner.RoundTrip(r)
}

// Whether a call keeps a cache filled: such a cache may have been started by a pass, but outlives it.
func opdevTraceOfInformer(r *http.Request) bool {
	query := r.URL.Query()
	return r.Method == http.MethodGet && (query.Has("watch") || query.Get("resourceVersion") == "0")
}
