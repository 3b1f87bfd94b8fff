package channel

import (
	"bufio"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/mailserver"
)

// serverCertificate is the test mail server's certificate; TestMain makes it trusted.
var serverCertificate tls.Certificate

// TestMain trusts a certificate through SSL_CERT_FILE, like an operator with a private CA.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "channel")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			panic(err)
		}
		serverCertificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
		file := filepath.Join(dir, "ca.pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			panic(err)
		}
		_ = os.Setenv("SSL_CERT_FILE", file)
		return m.Run()
	}())
}

// mailServer implements the part of SMTP (RFC 5321) that a sender needs.
type mailServer struct {
	address     string
	implicitTLS bool
	startTLS    bool
	auth        bool
	answers     map[string]string // replaces the usual reply to a command

	mu     sync.Mutex
	mails  []string
	to     []string
	login  string
	secure bool
}

func startMailServer(t *testing.T, s *mailServer) *mailServer {
	t.Helper()
	listener, err := net.Listen("tcp", cmp.Or(s.address, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s.address = listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *mailServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	config := &tls.Config{Certificates: []tls.Certificate{serverCertificate}}
	secure := s.implicitTLS
	if secure {
		conn = tls.Server(conn, config)
	}
	in := bufio.NewReader(conn)
	say := func(text string) { _, _ = fmt.Fprintf(conn, "%s\r\n", text) }
	say("220 mail.test ESMTP")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSpace(line)
		verb, rest, _ := strings.Cut(line, " ")
		verb = strings.ToUpper(verb)
		if answer := s.answers[verb]; answer != "" {
			say(answer)
			continue
		}
		switch verb {
		case "EHLO":
			say("250-mail.test")
			if s.startTLS && !secure {
				say("250-STARTTLS")
			}
			if s.auth {
				say("250-AUTH PLAIN LOGIN")
			}
			say("250 8BITMIME")
		case "STARTTLS":
			say("220 go ahead")
			conn = tls.Server(conn, config)
			in, secure = bufio.NewReader(conn), true
		case "AUTH":
			s.note(func() { s.login = strings.TrimPrefix(rest, "PLAIN ") })
			say("235 welcome")
		case "RCPT":
			s.note(func() { s.to = append(s.to, rest) })
			say("250 ok")
		case "DATA":
			say("354 go on")
			var mail strings.Builder
			for {
				line, err := in.ReadString('\n')
				if err != nil || line == ".\r\n" {
					break
				}
				mail.WriteString(line)
			}
			s.note(func() { s.mails, s.secure = append(s.mails, mail.String()), secure })
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func (s *mailServer) note(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
}

func sendMail(t *testing.T, allow, server string, c config) error {
	t.Helper()
	mail, err := mailserver.Parse(server, "Palisade <palisade@acme.test>")
	if err != nil {
		t.Fatal(err)
	}
	sender, err := Open(Email, c, newGuard(t, allow), mail)
	if err != nil {
		t.Fatal(err)
	}
	status, err := sender.Send(t.Context(), sample)
	if status != 0 {
		t.Errorf("e-mail has no HTTP status, got %d", status)
	}
	return err
}

var twoPeople = config{"to": "security@example.com, Ada <ada@example.com>"}

func TestMailOverTLS(t *testing.T) {
	for name, server := range map[string]*mailServer{"smtp": {startTLS: true, auth: true}, "smtps": {implicitTLS: true, auth: true}} {
		startMailServer(t, server)
		// The guard blocks internal addresses; the operator's mail server is exempt.
		if err := sendMail(t, "", name+"://acme:p%40ss@"+server.address, twoPeople); err != nil {
			t.Errorf("%s: %v, %v", name, err, errors.Unwrap(err))
			continue
		}
		login, _ := base64.StdEncoding.DecodeString(server.login)
		if !server.secure || string(login) != "\x00acme\x00p@ss" {
			t.Errorf("%s: TLS %v, login %q", name, server.secure, login)
		}
		if len(server.mails) != 1 || strings.Join(server.to, " ") != "TO:<security@example.com> TO:<ada@example.com>" {
			t.Fatalf("%s: %d mails to %v", name, len(server.mails), server.to)
		}
		for _, part := range []string{
			"Subject: 1 new finding in acme/web", "From: \"Palisade\" <palisade@acme.test>", "Message-ID: <evt_1007@acme.test>",
			"Auto-Submitted: auto-generated", "X-Palisade-Event: evt_1007", "Tue, 05 May 2026 00:30:00", "sqli at app/db.py:42 <!channel> & more",
		} {
			if !strings.Contains(server.mails[0], part) && !strings.Contains(server.mails[0], strings.Replace(part, "Tue, 05 May 2026 00:30:00", "Mon, 04 May 2026 23:30:00", 1)) {
				t.Errorf("%s: the mail lacks %q:\n%s", name, part, server.mails[0])
			}
		}
	}
}

func TestMailWithoutTLS(t *testing.T) {
	server := startMailServer(t, &mailServer{})
	if err := sendMail(t, "", "smtp://"+server.address, twoPeople); err != nil || server.secure {
		t.Errorf("a server on this machine may have no TLS: %v", err)
	}
	// The library treats 127.0.0.2 like any remote machine.
	server = startMailServer(t, &mailServer{auth: true, address: "127.0.0.2:0"})
	if err := sendMail(t, "", "smtp://acme:"+signingSecret+"@"+server.address, twoPeople); err == nil || server.login != "" || len(server.mails) != 0 {
		t.Errorf("a password was sent in the clear: %q, %v", server.login, err)
	}
}

// TestMailToOtherMachinesNeedsTLS: a remote server cannot run in a test, so it checks the request for TLS.
func TestMailToOtherMachinesNeedsTLS(t *testing.T) {
	for allow, plain := range map[string]bool{"": false, "mail.internal": true, "mail.internal:25": false} {
		mail, err := mailserver.Parse("smtp://mail.internal", "palisade@acme.test")
		if err != nil {
			t.Fatal(err)
		}
		sender, err := newEmail(twoPeople, newGuard(t, allow), mail)
		if err != nil || sender.plain != plain {
			t.Errorf("%q: %v", allow, err)
		}
		client, err := sender.client(t.Context())
		if want := map[bool]string{false: "TLSMandatory", true: "TLSOpportunistic"}[plain]; err != nil || client.TLSPolicy() != want {
			t.Errorf("%q: policy %s, %v", allow, client.TLSPolicy(), err)
		}
	}
	server := startMailServer(t, &mailServer{})
	mail, err := mailserver.Parse("smtp://"+server.address, "palisade@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	sender, err := newEmail(twoPeople, newGuard(t, ""), mail)
	if err != nil {
		t.Fatal(err)
	}
	sender.plain = false // as for a remote server
	if _, err := sender.Send(t.Context(), sample); err == nil || len(server.mails) != 0 {
		t.Errorf("a server without STARTTLS was used: %v", err)
	}
}

func TestMailRefused(t *testing.T) {
	for name, c := range map[string]struct {
		answers   map[string]string
		permanent bool
		text      string
	}{
		"sender":          {map[string]string{"MAIL": "550 5.7.1 relay of 10.1.2.3 denied"}, true, "the mail server refused the message with code 550"},
		"recipient":       {map[string]string{"RCPT": "550 5.1.1 no such user"}, true, "refused ada@example.com (550 5.1.1 no such user), security@example.com (550 5.1.1 no such user); 0 of 2 recipients have it"},
		"greylisting":     {map[string]string{"RCPT": "451 4.7.1 try later"}, false, "did not take the message yet for ada@example.com (451 4.7.1 try later), security"},
		"content":         {map[string]string{"DATA": "554 no"}, true, "with code 554"},
		"full":            {map[string]string{"DATA": "452 full"}, false, "with code 452"},
		"wrong password":  {map[string]string{"AUTH": "535 no"}, false, "could not be used"},
		"closing":         {map[string]string{"EHLO": "421 closing", "HELO": "421 closing"}, false, "could not be used"},
		"STARTTLS broken": {map[string]string{"STARTTLS": "454 not now"}, false, "could not be used"},
	} {
		server := startMailServer(t, &mailServer{startTLS: true, auth: true, answers: c.answers})
		err := sendMail(t, "", "smtp://acme:"+signingSecret+"@"+server.address, twoPeople)
		var e *Error
		if !errors.As(err, &e) || e.Permanent != c.permanent || !strings.Contains(e.Error(), c.text) {
			t.Errorf("%s: got %+v, %v", name, e, errors.Unwrap(err))
			continue
		}
		if strings.Contains(e.Error(), "10.1.2.3") || strings.Contains(e.Error(), signingSecret) {
			t.Errorf("%s: the text shows what is the operator's: %q", name, e)
		}
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	var e *Error
	if err := sendMail(t, "", "smtp://"+closed.Addr().String(), twoPeople); !errors.As(err, &e) || e.Permanent {
		t.Errorf("a server that is down: %v", err)
	}
}

func TestMailCountsAsSentWhenItWasTaken(t *testing.T) {
	server := startMailServer(t, &mailServer{answers: map[string]string{"RSET": "500 what", "QUIT": "500 what"}})
	if err := sendMail(t, "", "smtp://"+server.address, twoPeople); err != nil || len(server.mails) != 1 {
		t.Errorf("got %v, %d mails", err, len(server.mails))
	}
}

// Every form of an e-mail ends with why the reader gets it. A chat does not: its readers see where the message is.
func TestWhy(t *testing.T) {
	m := Message{Text: "Found.\n", HTML: "<html><body><h1>Found</h1></body></html>", Why: `Rule "<b>" of acme: https://palisade.acme.test/x`}
	text, page := withWhy(m)
	if text != "Found.\n\n-- \n"+m.Why+"\n" || !strings.HasSuffix(page, `>Rule &#34;&lt;b&gt;&#34; of acme: https://palisade.acme.test/x</p></body></html>`) || !strings.Contains(page, "<h1>Found</h1><p") {
		t.Errorf("got %q and %q", text, page)
	}
	m.Why = ""
	if text, page := withWhy(m); text != m.Text || page != m.HTML {
		t.Errorf("got %q and %q", text, page)
	}
}
