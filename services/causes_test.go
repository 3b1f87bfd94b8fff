package services_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Why a credential was refused is in the log, with the id of the request, and never in the answer.
func TestCausesOfRefusedCredentials(t *testing.T) {
	issuer, idToken := idProvider(t)
	cfg := apitest.EmptyConfig(t)
	cfg.OIDCIssuer, cfg.OIDCAudience = issuer, "palisade"
	running, out := apitest.StartConfigured(t, cfg)
	now := time.Now()
	good := idToken(map[string]any{"sub": "ada"})
	answers := map[string]bool{}
	for id, c := range map[string]struct{ credential, cause string }{
		"audience": {idToken(map[string]any{"sub": "ada", "aud": "other"}), "expected audience"},
		"no-azp":   {idToken(map[string]any{"sub": "ada", "aud": []string{"palisade", "other"}}), "2 audiences and no azp"},
		"azp":      {idToken(map[string]any{"sub": "ada", "azp": "other"}), "its azp is"},
		"slash":    {idToken(map[string]any{"sub": "ada", "iss": issuer + "/"}), "which is neither this server"},
		"expired":  {idToken(map[string]any{"sub": "ada", "iat": now.Add(-2 * time.Hour).Unix(), "exp": now.Add(-time.Hour).Unix()}), "expired"},
		"long":     {idToken(map[string]any{"sub": "ada", "exp": now.Add(90 * time.Hour).Unix()}), "lives longer than"},
		"forged":   {good[:len(good)-8] + "AAAAAAAA", "failed to verify signature"},
		"unknown":  {"sgp_" + strings.Repeat("a", 40), "no API token has this value"},
	} {
		code, body := requestAs(t, http.MethodGet, "http://"+running.Addresses().HTTP+"/api/v1/deployments", c.credential, "", id)
		if code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", id, code, body)
		}
		answers[strings.Replace(body, `"requestId":"`+id+`"`, "", 1)] = true
		line := logLine(t, out, "request_id="+id)
		if !strings.Contains(line, "cause=") || !strings.Contains(line, c.cause) || strings.Contains(out.String(), c.credential) {
			t.Errorf("%s: want %q: %s", id, c.cause, line)
		}
	}
	if len(answers) != 1 {
		t.Errorf("the answers differ: %v", answers)
	}
}

// requestAs sends a request with a request id.
func requestAs(t *testing.T, method, url, credential, body, id string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+credential)
	request.Header.Set("X-Request-Id", id)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// logLine waits for a line of the log with these texts.
func logLine(t *testing.T, out *apitest.Output, texts ...string) (found string) {
	t.Helper()
	apitest.Eventually(t, "the log has a line with "+strings.Join(texts, ", "), func() bool {
		for line := range strings.Lines(out.String()) {
			all := true
			for _, text := range texts {
				all = all && strings.Contains(line, text)
			}
			if all {
				found = line
			}
		}
		return found != ""
	})
	return found
}

// replies is a mail server that answers each verb with a reply, or with 250.
func replies(t *testing.T, to map[string]string) (address string) {
	t.Helper()
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
			go answerMail(conn, to)
		}
	}()
	return listener.Addr().String()
}

func answerMail(conn net.Conn, to map[string]string) {
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "220 mail.test ESMTP\r\n")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		verb, _, _ := strings.Cut(strings.ToUpper(lines.Text()), " ")
		reply := to[verb]
		if reply == "" {
			reply = "250 ok"
		}
		_, _ = io.WriteString(conn, reply+"\r\n")
	}
}

// brokenMail are mail servers that cannot be used, with a part of the cause. The first repeats the password.
func brokenMail(t *testing.T) map[string][2]string {
	t.Helper()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	files := apitest.TLSConfig(t)
	apitest.WriteCertificate(t, files, 1, time.Now().Add(time.Hour)) // nobody trusts it
	pair, err := tls.LoadX509KeyPair(files.TLSCert, files.TLSKey)
	if err != nil {
		t.Fatal(err)
	}
	secured, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = secured.Close() })
	go func() {
		for {
			conn, err := secured.Accept()
			if err != nil {
				return
			}
			go answerMail(conn, nil)
		}
	}()
	password := replies(t, map[string]string{"EHLO": "250-mail.test\r\n250 AUTH PLAIN", "AUTH": "535 5.7.8 wrong: ada hunter22 AGFkYQBodW50ZXIyMg=="})
	foreign := replies(t, map[string]string{"EHLO": "250-mail.test\r\n250 AUTH GSSAPI"})
	return map[string][2]string{
		"password":    {"smtp://ada:hunter22@" + password, "535"},
		"auth":        {"smtp://ada:hunter22@" + foreign, "auth"},
		"closed":      {"smtp://ada:hunter22@" + closed.Addr().String(), "connection refused"},
		"certificate": {"smtps://ada:hunter22@" + secured.Addr().String(), "certificate"},
		"host":        {"smtp://ada:hunter22@mail.invalid:25", "mail.invalid"},
	}
}

// Why the mail server cannot be used is in the log, with the id of the request or the delivery, and in the doctor's
// report. The password is in neither, also if the mail server repeats it.
func TestCausesOfFailedMails(t *testing.T) {
	for name, c := range brokenMail(t) {
		t.Run(name, func(t *testing.T) {
			cfg := apitest.EmptyConfig(t)
			cfg.SMTP, cfg.SMTPFrom, cfg.BootstrapToken = c[0], "palisade@acme.test", "sgp_test4Kq2vXw7RbZ4mLd8sYh3nPc6JfGa5TeUo1WiQx"
			running, out := apitest.StartConfigured(t, cfg)
			base := "http://" + running.Addresses().HTTP
			send := func(path, body, id string) string {
				t.Helper()
				code, answer := requestAs(t, http.MethodPost, base+path, cfg.BootstrapToken, body, id)
				if code != http.StatusOK {
					t.Fatalf("%s: %d %s", path, code, answer)
				}
				return answer
			}
			const rules = "/api/agent/deployments/1/actions"
			send(rules, `{"notificationRule":{"name":"people","channel":"email","is_enabled":true,"config":{"to":"ada@acme.test"}}}`, "make")
			if answer := send(rules+"/1/test", "{}", "try"); strings.Contains(answer, c[1]) || !strings.Contains(answer, "could not be used") {
				t.Errorf("the tenant reads %s", answer)
			}
			send("/api/v1/deployments/default/reports?project=acme/web&ref=main", reportOfOne, "upload")
			for _, id := range []string{"request_id=try", "delivery_id=1"} {
				if line := logLine(t, out, "a notification could not be sent", id); !strings.Contains(strings.ToLower(line), c[1]) {
					t.Errorf("%s: want %q: %s", id, c[1], line)
				}
			}
			found := ""
			for _, check := range services.Doctor(t.Context(), cfg) {
				if check.Name == "mail server" && !check.OK {
					found = strings.ToLower(check.Detail)
				}
			}
			if !strings.Contains(found, c[1]) {
				t.Errorf("the doctor: %q, want %q", found, c[1])
			}
			for _, secret := range []string{"hunter22", "AGFkYQBodW50ZXIyMg=="} {
				if strings.Contains(out.String()+found, secret) {
					t.Errorf("the password: %s %s", found, out)
				}
			}
		})
	}
}

// reportOfOne is a report with one finding.
const reportOfOne = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[{"ruleId":"r","level":"error",` +
	`"message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":1}}}]}]}]}`

// The doctor signs in to a mail server that works.
func TestDoctorChecksTheMailServer(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	address := replies(t, map[string]string{"EHLO": "250-mail.test\r\n250 AUTH PLAIN", "AUTH": "235 welcome", "MAIL": "550 no message", "QUIT": "221 bye"})
	cfg.SMTP, cfg.SMTPFrom = fmt.Sprintf("smtp://ada:hunter22@%s", address), "palisade@acme.test"
	for _, check := range services.Doctor(t.Context(), cfg) {
		if check.Name == "mail server" {
			if !check.OK || !strings.Contains(check.Detail, address) {
				t.Errorf("got %+v", check)
			}
			return
		}
	}
	t.Error("the mail server was not checked")
}
