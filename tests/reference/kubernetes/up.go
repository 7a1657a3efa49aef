package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// up starts etcd, the API server and (unless told otherwise) the controllers and a player of pod life.
func up() error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder for data, certificates and logs (made; its old content is removed)")
	port := flags.Int("port", 0, "the API server's port on loopback; 0 picks a free one")
	controllers := flags.Bool("controllers", true, "run the controller manager")
	play := flags.Bool("pods", true, "mark pods as scheduled, running and ready, as nodes would")
	fsync := flags.Bool("fsync", true, "let etcd wait for the disk")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	if *dir == "" {
		return fmt.Errorf("--dir is needed")
	}
	if err := os.RemoveAll(*dir); err != nil {
		return err
	}
	made, err := makeCredentials(*dir)
	if err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	if *port == 0 {
		more, err := freePorts(1)
		if err != nil {
			return err
		}
		*port = more[0]
	}
	began := time.Now()
	children := &children{dir: *dir}
	defer children.stop()
	etcdArgs := []string{"etcd", filepath.Join(*dir, "etcd"), address(ports[0]), address(ports[1])}
	if !*fsync {
		etcdArgs = append(etcdArgs, "no-fsync")
	}
	if err := children.start(etcdArgs...); err != nil {
		return err
	}
	if err := children.start(made.apiserver(address(ports[0]), *port)...); err != nil {
		return err
	}
	if err := made.writeKubeconfig(*port); err != nil {
		return err
	}
	if err := ready(made, *port, children); err != nil {
		return err
	}
	if *controllers {
		if err := children.start(made.manager()...); err != nil {
			return err
		}
	}
	if *play {
		if err := children.start("pods", made.kubeconfig); err != nil {
			return err
		}
	}
	fmt.Printf("ready after %d ms\nexport KUBECONFIG=%s\n", time.Since(began).Milliseconds(), made.kubeconfig)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-stop:
		return nil
	case name := <-children.ended():
		return fmt.Errorf("%s ended; its log is in %s", name, *dir)
	}
}

func address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

func freePorts(count int) ([]int, error) {
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// ready waits until the API server says that it is.
func ready(made *credentials, port int, children *children) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(made.ca)
	pair, err := tls.X509KeyPair(made.admin, made.adminKey)
	if err != nil {
		return err
	}
	client := http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}},
	}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		answer, err := client.Get("https://" + address(port) + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case name := <-children.ended():
			return fmt.Errorf("%s ended before it was ready; its log is in %s", name, children.dir)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("not ready after two minutes; logs are in %s", children.dir)
}

// children are the processes that up started, each with a log of its own.
type children struct {
	dir  string
	all  []*exec.Cmd
	over chan string
}

func (c *children) ended() chan string {
	if c.over == nil {
		c.over = make(chan string, 8)
	}
	return c.over
}

func (c *children) start(args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(c.dir, args[0]+".log"))
	if err != nil {
		return err
	}
	command := exec.Command(self, args...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return err
	}
	over := c.ended()
	go func() {
		_ = command.Wait()
		over <- args[0]
	}()
	c.all = append(c.all, command)
	return nil
}

func (c *children) stop() {
	for at := len(c.all) - 1; at >= 0; at-- {
		_ = c.all[at].Process.Kill()
	}
}
