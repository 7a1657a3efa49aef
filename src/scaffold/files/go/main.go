package main

import (
	"crypto/tls"
	"flag"
	"os"

	// Credentials of cloud providers in a kubeconfig.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

// The kinds that the manager's client reads and writes.
func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

// certificate names the files of a TLS certificate.
type certificate struct {
	folder, name, key string
}

func (c *certificate) bind(server string) {
	flag.StringVar(&c.folder, server+"-cert-path", "", "The folder with the certificate of the "+server+" server.")
	flag.StringVar(&c.name, server+"-cert-name", "tls.crt", "The certificate's file in that folder.")
	flag.StringVar(&c.key, server+"-cert-key", "tls.key", "The key's file in that folder.")
}

func main() {
	var metricsCert, webhookCert certificate
	metricsCert.bind("metrics")
	webhookCert.bind("webhook")
	metricsAddr := flag.String("metrics-bind-address", "0", "Where metrics are served, such as :8443; 0 serves none.")
	secureMetrics := flag.Bool("metrics-secure", true, "Serve metrics by HTTPS, to those who may read them.")
	probeAddr := flag.String("health-probe-bind-address", ":8081", "Where /healthz and /readyz are served.")
	leaderElect := flag.Bool("leader-elect", false, "Of several managers only the leader works.")
	webhookPort := flag.Int("webhook-port", 9443, "Where webhooks are served; -1 serves none.")
	enableHTTP2 := flag.Bool("enable-http2", false, "Serve metrics and webhooks by HTTP/2, too.")
	logging := zap.Options{Development: true}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	// A client may reset streams of HTTP/2 so fast that it overloads the server (CVE-2023-44487).
	var tlsOpts []func(*tls.Config)
	if !*enableHTTP2 {
		tlsOpts = append(tlsOpts, func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} })
	}

	// Without a certificate the metrics server signs one itself.
	metrics := metricsserver.Options{BindAddress: *metricsAddr, SecureServing: *secureMetrics, TLSOpts: tlsOpts}
	if *secureMetrics {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if metricsCert.folder != "" {
		metrics.CertDir, metrics.CertName, metrics.KeyName = metricsCert.folder, metricsCert.name, metricsCert.key
	}
	webhooks := webhook.Options{TLSOpts: tlsOpts, Port: *webhookPort}
	if webhookCert.folder != "" {
		webhooks.CertDir, webhooks.CertName, webhooks.KeyName = webhookCert.folder, webhookCert.name, webhookCert.key
	}

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metrics,
		WebhookServer:          webhook.NewServer(webhooks),
		HealthProbeBindAddress: *probeAddr,
		LeaderElection:         *leaderElect,
		LeaderElectionID:       "@LEADER@",
	})
	if err != nil {
		setupLog.Error(err, "Failed to create the manager")
		os.Exit(1)
	}

	// +kubebuilder:scaffold:builder

	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		setupLog.Error(err, "Failed to add the health check")
		os.Exit(1)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		setupLog.Error(err, "Failed to add the ready check")
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		setupLog.Error(err, "The manager ended")
		os.Exit(1)
	}
}
