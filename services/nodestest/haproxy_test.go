package nodestest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// haproxy is a load balancer in front of the nodes, configured as in docs/scale.md.
type haproxy struct {
	t          testing.TB
	http, grpc string // addresses
	roots      *x509.CertPool
	admin      string // socket
	log        *output
}

// startHAProxy runs a load balancer in front of three nodes.
func startHAProxy(t testing.TB, path string, nodes []*node) *haproxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "haproxy") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &haproxy{t: t, admin: filepath.Join(dir, "admin.sock")}
	pemFile := filepath.Join(dir, "palisade.pem")
	p.roots = certificate(t, pemFile)
	config := replaceAll(t, reference(t, "haproxy"),
		"log stdout format raw", "log stdout format rfc5424", // this format has the time of each line
		"maxconn 8000", "maxconn 200", "/run/haproxy/admin.sock", p.admin, "/etc/haproxy/palisade.pem", pemFile, "bind :443", "bind fd@3", "bind :9443", "bind fd@4")
	for i, n := range nodes {
		host := fmt.Sprintf("10.0.0.%d", 11+i)
		_, port, _ := net.SplitHostPort(n.http)
		lines := strings.SplitAfter(replaceAll(t, config, host+":8080", n.http, host+":9090", n.grpc), "\n")
		for k, line := range lines {
			if strings.Contains(line, n.grpc) {
				lines[k] = strings.Replace(line, "port 8080", "port "+port, 1)
			}
		}
		config = strings.Join(lines, "")
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// It inherits listening sockets, so that no other program can take its ports.
	var sockets []*os.File
	for _, address := range []*string{&p.http, &p.grpc} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		socket, err := listener.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		*address, sockets = listener.Addr().String(), append(sockets, socket)
		defer func() { _ = listener.Close(); _ = socket.Close() }()
	}
	check, cmd := exec.Command(path, "-c", "-f", file), exec.Command(path, "-db", "-f", file)
	check.ExtraFiles, cmd.ExtraFiles = sockets, sockets
	if out, err := check.CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Fatalf("haproxy rejects the configuration of docs/scale.md: %v\n%s", err, out)
	}
	p.log = process(t, cmd)
	for _, n := range nodes {
		p.waitFor(n.name, "UP")
	}
	return p
}

// certificate writes a certificate and key for localhost, and returns a pool that trusts it.
func certificate(t testing.TB, file string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return roots
}

// client returns a client that connects to the load balancer.
func (p *haproxy) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.roots}, MaxIdleConnsPerHost: 32},
		Timeout:   time.Minute,
	}
}

// server is the load balancer's state of one node.
type server struct {
	status                                           string // UP, DOWN or a transition such as "UP 1/2"
	connectErrors, responseErrors, serverErrors, sum int    // sum: all sessions
}

// server reads the state of a node's HTTP port.
func (p *haproxy) server(name string) server {
	p.t.Helper()
	conn, err := net.Dial("unix", p.admin)
	if err != nil {
		return server{status: err.Error()} // it is starting
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "show stat\n"); err != nil {
		p.t.Fatal(err)
	}
	rows, err := csv.NewReader(conn).ReadAll()
	if err != nil || len(rows) == 0 {
		p.t.Fatalf("haproxy's statistics: %v", err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[strings.TrimPrefix(name, "# ")] = i
	}
	for _, row := range rows[1:] {
		if row[column["pxname"]] == "palisade_http" && row[column["svname"]] == name {
			number := func(key string) int {
				n, _ := strconv.Atoi(row[column[key]]) // 0 if empty
				return n
			}
			return server{row[column["status"]], number("econ"), number("eresp"), number("hrsp_5xx"), number("stot")}
		}
	}
	p.t.Fatalf("haproxy does not know %s", name)
	return server{}
}

// waitFor waits until a node has this status.
func (p *haproxy) waitFor(name, status string) {
	p.t.Helper()
	apitest.Eventually(p.t, name+" is "+status, func() bool { return p.server(name).status == status })
}

// outAt waits until both ports of a node are out of rotation, and returns the time from the load balancer's log.
// Polling from a busy machine would see it later.
func (p *haproxy) outAt(name string) (at time.Time) {
	p.t.Helper()
	for _, backend := range []string{"palisade_http", "palisade_grpc"} {
		down := regexp.MustCompile(`(?m)^<\d+>1 (\S+) .* Server ` + backend + "/" + name + " is DOWN,")
		var line []string
		apitest.Eventually(p.t, name+" is out of "+backend, func() bool {
			line = down.FindStringSubmatch(p.log.String())
			return line != nil
		})
		logged, err := time.Parse(time.RFC3339Nano, line[1])
		if err != nil {
			p.t.Fatalf("haproxy's log: %v", err)
		}
		if logged.After(at) {
			at = logged
		}
	}
	return at
}

// requireGRPC requires that a gRPC call succeeds.
func (p *haproxy) requireGRPC() {
	p.t.Helper()
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: p.roots})))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := platformv1.NewMiscellaneousServiceClient(conn).Ping(p.t.Context(), &platformv1.PingRequest{}); err != nil {
		p.t.Errorf("gRPC through haproxy: %v", err)
	}
}
