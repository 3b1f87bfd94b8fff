package services_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestAuditAnchorsLeave: the server exports its anchors to a file, a syslog daemon or a webhook by itself, and verify
// accepts the exported lines.
func TestAuditAnchorsLeave(t *testing.T) {
	t.Parallel()
	for name, receive := range map[string]func(t *testing.T, got chan<- string) (setting string){
		"file":       toFile,
		"syslog":     toSyslog,
		"syslog+udp": toSyslogUDP,
		"webhook":    toWebhook,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
				got := make(chan string, 10) // of this server only
				setting := receive(t, got)
				s := apitest.Start(t, func(c *config.Config) {
					on(c)
					c.AuditAnchor, c.AuditAnchorEvery, c.EgressAllow = setting, 10*time.Second, "127.0.0.1"
				})
				line := next(t, got)
				if !strings.Contains(line, `"deployment_id":1,"sequence":`) || !strings.Contains(line, `"mac":"`) {
					t.Fatalf("got %q", line)
				}
				file := filepath.Join(t.TempDir(), "known")
				if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				s.Upload(t, "acme/web", "main", []byte(oneResult))
				if problems := verifyKnown(t, s, file); problems != "" {
					t.Errorf("got %s", problems)
				}
			})
		})
	}
}

// TestAuditAnchorOfARollback: an anchor reveals a trail that was rolled back as a whole, on both databases.
func TestAuditAnchorOfARollback(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		_, writer := s.Store.DB()
		execute := func(statement string) {
			t.Helper()
			if _, err := writer.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		s.Upload(t, "acme/web", "main", []byte(oneResult))
		execute("CREATE TABLE heads_before AS SELECT * FROM audit_heads")
		s.Upload(t, "acme/api", "main", []byte(oneResult))
		file := filepath.Join(t.TempDir(), "known")
		var lines []byte
		if err := services.AnchorAudit(t.Context(), s.Config, "", func(line []byte) error {
			lines = append(lines, line...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, lines, 0o600); err != nil {
			t.Fatal(err)
		}
		execute("DELETE FROM audit_entries WHERE sequence > 1")
		execute("DELETE FROM audit_heads")
		execute("INSERT INTO audit_heads SELECT * FROM heads_before")
		execute("DROP TABLE heads_before")
		if problems := verifyKnown(t, s, ""); problems != "" {
			t.Errorf("the database alone shows %s", problems)
		}
		if problems := verifyKnown(t, s, file); !strings.Contains(problems, "is missing although #2 is known") {
			t.Errorf("got %q", problems)
		}
		execute("DELETE FROM audit_entries")
		execute("DELETE FROM audit_heads")
		execute(fmt.Sprintf("UPDATE deployments SET id = %d WHERE id = %d", s.DeploymentID+1000, s.DeploymentID))
		if problems := verifyKnown(t, s, file); !strings.Contains(problems, "was removed together with its trail") {
			t.Errorf("got %q", problems)
		}
	})
}

// TestEveryDeploymentHasATrail: the deployment of the first start has one, and so has a deployment that an RPC creates.
// One deployment's trail cannot replace another's.
func TestEveryDeploymentHasATrail(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		admin := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin)
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		made, err := client.CreateDeployment(s.Context(t, admin), &deploymentsv1.CreateDeploymentRequest{DeploymentName: "Globex"})
		if err != nil {
			t.Fatal(err)
		}
		if problems := verifyKnown(t, s, ""); problems != "" {
			t.Errorf("got %s", problems)
		}
		_, writer := s.Store.DB()
		for _, table := range []string{"audit_entries", "audit_heads"} {
			if _, err := writer.ExecContext(t.Context(), fmt.Sprintf("DELETE FROM %s WHERE deployment_id = %d", table, made.GetDeployment().GetId())); err != nil {
				t.Fatal(err)
			}
		}
		if problems := verifyKnown(t, s, ""); !strings.Contains(problems, "the origin of the trail") {
			t.Errorf("a deployment whose trail was removed: %q", problems)
		}
	})
}

const oneResult = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec"}},"results":[
	{"ruleId":"G104","message":{"text":"Errors unhandled"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3}}}]}]}]}`

func verifyKnown(t *testing.T, s *apitest.Server, file string) string {
	t.Helper()
	var problems []string
	err := services.VerifyAudit(t.Context(), s.Config, "", services.KnownAudit{File: file}, func(string, int64) {}, func(r services.AuditReport) error {
		problems = append(problems, r.Broken...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(problems, "; ")
}

func next(t *testing.T, got <-chan string) string {
	t.Helper()
	select {
	case line := <-got:
		return line
	case <-time.After(time.Minute):
		t.Fatal("no anchor arrived")
		return ""
	}
}

func toFile(t *testing.T, got chan<- string) string {
	path := filepath.Join(t.TempDir(), "anchors.ndjson")
	ctx, cancel := context.WithCancel(tenant.System(t.Context()))
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
				_ = os.Remove(path)
				got <- strings.TrimSpace(string(text))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return "file://" + path
}

func toSyslog(t *testing.T, got chan<- string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var length int
			r := bufio.NewReader(conn)
			if _, err := fmt.Fscanf(r, "%d ", &length); err == nil {
				text := make([]byte, length)
				_, _ = io.ReadFull(r, text)
				got <- string(text)
			}
			_ = conn.Close()
		}
	}()
	return "syslog://" + listener.Addr().String()
}

func toSyslogUDP(t *testing.T, got chan<- string) string {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		text := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(text)
			if err != nil {
				return
			}
			got <- string(text[:n])
		}
	}()
	return "syslog+udp://" + conn.LocalAddr().String()
}

func toWebhook(t *testing.T, got chan<- string) string {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/x-ndjson" {
			got <- strings.TrimSpace(string(text))
		}
	}))
	t.Cleanup(receiver.Close)
	return receiver.URL + "/anchors"
}
