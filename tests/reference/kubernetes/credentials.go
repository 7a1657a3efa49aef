package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// credentials are the files that the components and their clients share.
type credentials struct {
	dir             string
	ca              []byte
	admin, adminKey []byte
	token           string
	kubeconfig      string
}

func makeCredentials(dir string) (*credentials, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	caKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "reference"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, root, root, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	made := &credentials{dir: dir, ca: encode("CERTIFICATE", raw), kubeconfig: filepath.Join(dir, "kubeconfig")}
	server := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, DNSNames: []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	serving, servingKey, err := issue(server, root, caKey, 2)
	if err != nil {
		return nil, err
	}
	client := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if made.admin, made.adminKey, err = issue(client, root, caKey, 3); err != nil {
		return nil, err
	}
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	made.token = hex.EncodeToString(secret)
	files := map[string][]byte{
		"ca.crt": made.ca, "ca.key": encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(caKey)),
		"server.crt": serving, "server.key": servingKey, "sa.key": servingKey,
		"tokens.csv": []byte(made.token + ",token-admin,token-admin,system:masters\n"),
	}
	for name, content := range files {
		if err := os.WriteFile(made.file(name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func issue(want, root *x509.Certificate, rootKey *rsa.PrivateKey, serial int64) ([]byte, []byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	want.SerialNumber = big.NewInt(serial)
	want.NotBefore, want.NotAfter = root.NotBefore, root.NotAfter
	want.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	raw, err := x509.CreateCertificate(rand.Reader, want, root, &key.PublicKey, rootKey)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", raw), encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), nil
}

func encode(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

func (c *credentials) file(name string) string {
	return filepath.Join(c.dir, name)
}

func (c *credentials) apiserver(etcd string, port int) []string {
	return []string{
		"kube-apiserver", "--etcd-servers=http://" + etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.file("server.crt"), "--tls-private-key-file=" + c.file("server.key"),
		"--client-ca-file=" + c.file("ca.crt"), "--token-auth-file=" + c.file("tokens.csv"),
		"--service-account-key-file=" + c.file("sa.key"), "--service-account-signing-key-file=" + c.file("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
		"--authorization-mode=RBAC", "--enable-priority-and-fairness=false",
	}
}

func (c *credentials) manager() []string {
	return []string{
		"kube-controller-manager", "--kubeconfig=" + c.kubeconfig, "--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.file("sa.key"), "--root-ca-file=" + c.file("ca.crt"),
		"--cluster-signing-cert-file=" + c.file("ca.crt"), "--cluster-signing-key-file=" + c.file("ca.key"),
		"--leader-elect=false", "--secure-port=0",
	}
}

func (c *credentials) writeKubeconfig(port int) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: reference
clusters:
- name: reference
  cluster:
    server: https://%s
    certificate-authority-data: %s
users:
- name: admin
  user:
    client-certificate-data: %s
    client-key-data: %s
- name: token
  user:
    token: %s
contexts:
- name: reference
  context: {cluster: reference, user: admin}
- name: reference-token
  context: {cluster: reference, user: token}
`, address(port), base64.StdEncoding.EncodeToString(c.ca), base64.StdEncoding.EncodeToString(c.admin),
		base64.StdEncoding.EncodeToString(c.adminKey), c.token)
	return os.WriteFile(c.kubeconfig, []byte(text), 0o600)
}
