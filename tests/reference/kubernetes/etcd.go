package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcd DIR CLIENT-ADDRESS PEER-ADDRESS [no-fsync]: a single member.
func etcd() error {
	if len(os.Args) < 4 {
		return fmt.Errorf("etcd needs a folder and two addresses")
	}
	config := embed.NewConfig()
	config.Dir = os.Args[1]
	config.LogLevel = "error"
	client, err := url.Parse("http://" + os.Args[2])
	if err != nil {
		return err
	}
	peer, err := url.Parse("http://" + os.Args[3])
	if err != nil {
		return err
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = len(os.Args) > 4 && os.Args[4] == "no-fsync"
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-stop:
		return nil
	case err := <-server.Err():
		return err
	}
}
