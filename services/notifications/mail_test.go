package notifications_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// sentMail is a message that the mail server accepted.
type sentMail struct {
	to []string
	id string
	// text is the message as it came.
	text string
}

// mailbox is a mail server (RFC 5321) with configurable replies.
type mailbox struct {
	address string

	mu       sync.Mutex
	rcpt     map[string]string // replies to RCPT by address; "": 250
	dot      string            // reply to the end of a message; "": 250, "cut": closes the connection
	data     string            // reply to DATA; "": 354
	asked    []string          // recipients, in order
	mails    []sentMail
	cutMails []sentMail
}

func newMailbox(t testing.TB) *mailbox {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	m := &mailbox{address: listener.Addr().String(), rcpt: map[string]string{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go m.serve(conn)
		}
	}()
	return m
}

func (m *mailbox) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *mailbox) taken() []sentMail {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mails)
}

func (m *mailbox) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	say := func(text string) { _, _ = fmt.Fprintf(conn, "%s\r\n", text) }
	say("220 mail.test ESMTP")
	var to []string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch strings.ToUpper(verb) {
		case "MAIL":
			to = nil
			say("250 ok")
		case "RCPT":
			address := strings.Trim(strings.TrimPrefix(rest, "TO:"), "<>")
			answer := ""
			m.set(func() { m.asked, answer = append(m.asked, address), m.rcpt[address] })
			if answer == "" {
				to, answer = append(to, address), "250 ok"
			}
			say(answer)
		case "DATA":
			if !m.take(in, say, to) {
				return
			}
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// take reads a message; goOn is false if the connection must end.
func (m *mailbox) take(in *bufio.Reader, say func(string), to []string) (goOn bool) {
	data := ""
	m.set(func() { data = m.data })
	if data != "" {
		say(data)
		return true
	}
	say("354 go on")
	mail := sentMail{to: to}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		if line == ".\r\n" {
			break
		}
		mail.text += line
		if id, ok := strings.CutPrefix(line, "Message-ID: "); ok {
			mail.id = strings.TrimSpace(id)
		}
	}
	dot := ""
	m.set(func() {
		switch dot = m.dot; dot {
		case "":
			m.mails, dot = append(m.mails, mail), "250 taken"
		case "cut":
			m.cutMails = append(m.cutMails, mail)
		}
	})
	if dot == "cut" {
		return false
	}
	say(dot)
	return true
}

// eachMail runs a test on both databases with a mail server and a rule to some recipients.
func eachMail(t *testing.T, to string, test func(t *testing.T, s caller, m *mailbox, rule int64)) {
	t.Helper()
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		m := newMailbox(t)
		server := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.EgressAllow, c.SMTP, c.SMTPFrom = "127.0.0.1", "smtp://"+m.address, "palisade@acme.test"
		})
		s := caller{server, server.AddUser(t, server.Tenant, "admin@acme.test", access.RoleAdmin)}
		var made struct {
			Rule struct {
				ID int64 `json:"id"`
			} `json:"notification_rule"`
		}
		decode(t, s.Body(t, s.Token, http.MethodPost, s.actions(""), mailRule("people", to), 200), &made)
		test(t, s, m, made.Rule.ID)
	})
}

func mailRule(name, to string) string {
	return fmt.Sprintf(`{"notificationRule":{"name":%q,"channel":"email","is_enabled":true,"config":{"to":%q}}}`, name, to)
}

// configError is the config_error of the only rule.
func (c caller) configError(t testing.TB) string {
	t.Helper()
	var list struct {
		Rules []struct {
			ConfigError string `json:"config_error"`
		} `json:"notification_rules"`
	}
	decode(t, c.Body(t, c.Token, http.MethodPost, c.actions("/list"), "{}", 200), &list)
	if len(list.Rules) != 1 {
		t.Fatalf("%d rules", len(list.Rules))
	}
	return list.Rules[0].ConfigError
}

// hurry makes waiting deliveries due.
func (c caller) hurry(t testing.TB) {
	c.change(t, func(u *ent.DeliveryUpdate) { u.SetNextAttemptAt(store.Now()) })
}

// attemptErrors returns the errors of a delivery's attempts.
func (c caller) attemptErrors(t testing.TB, id string) (texts []string) {
	t.Helper()
	var got struct{ Attempts []struct{ Error string } }
	decode(t, c.Body(t, c.Token, http.MethodGet, c.deliveries("/"+id), "", 200), &got)
	for _, a := range got.Attempts {
		texts = append(texts, a.Error)
	}
	return texts
}

func requireMails(t *testing.T, got []sentMail, want ...string) {
	t.Helper()
	var to []string
	for _, m := range got {
		to = append(to, strings.Join(m.to, " "))
	}
	if !slices.Equal(to, want) {
		t.Errorf("mails to %q, want %q", to, want)
	}
}

const dead = "550 5.1.1 <dead@acme.test>: no such user\u0007 at 10.1.2.3"

// deadText is the error text: one plain line without IP addresses.
const deadText = "dead@acme.test (550 5.1.1 <dead@acme.test>: no such user at ***)"

// Accepted recipients get the message; a refused one is named until a message to it is accepted.
func TestMailToOneDeadAddressOfThree(t *testing.T) {
	eachMail(t, "ada@acme.test, dead@acme.test, bob@acme.test", func(t *testing.T, s caller, m *mailbox, rule int64) {
		m.set(func() { m.rcpt["dead@acme.test"] = dead })
		if got := s.configError(t); got != "" {
			t.Errorf("before anything was sent: %s", got)
		}
		s.Upload(t, "acme/web", "main", report("a"))
		d := s.waitState(t, "DELIVERED", 1)[0]
		requireMails(t, m.taken(), "ada@acme.test bob@acme.test")
		want := "the mail server refused " + deadText + "; 2 of 3 recipients have it"
		if d.Attempts != 1 || d.LastError != want {
			t.Errorf("delivery %+v, want %s", d, want)
		}
		if got := s.attemptErrors(t, d.ID); len(got) != 1 || got[0] != want {
			t.Errorf("attempts %q", got)
		}
		refused := "the mail server refuses addresses of config.to, which get no messages: " + deadText
		apitest.Eventually(t, "config_error names the address", func() bool { return s.configError(t) == refused })

		// A new name does not change the config.
		path := s.actions(fmt.Sprintf("/%d", rule))
		s.Body(t, s.Token, http.MethodPut, path, mailRule("renamed", "ada@acme.test, dead@acme.test, bob@acme.test"), 200)
		if got := s.configError(t); got != refused {
			t.Errorf("after a new name: %q", got)
		}
		// An accepted message clears the error.
		m.set(func() { delete(m.rcpt, "dead@acme.test") })
		s.Body(t, s.Token, http.MethodPost, s.deliveries("/"+d.ID+"/replay"), "{}", 200)
		apitest.Eventually(t, "config_error is gone", func() bool { return s.configError(t) == "" })
		requireMails(t, m.taken(), "ada@acme.test bob@acme.test", "ada@acme.test dead@acme.test bob@acme.test")

		// A test sets the error too, and a new config clears it.
		m.set(func() { m.rcpt["dead@acme.test"] = dead })
		if got := s.Body(t, s.Token, http.MethodPost, path+"/test", "{}", 200); !strings.Contains(got, "2 of 3 recipients have it") {
			t.Errorf("test: %s", got)
		}
		if got := s.configError(t); got != refused {
			t.Errorf("after a test: %q", got)
		}
		s.Body(t, s.Token, http.MethodPut, path, mailRule("renamed", "ada@acme.test, bob@acme.test"), 200)
		if got := s.configError(t); got != "" {
			t.Errorf("after a new config: %s", got)
		}
	})
}

// If all recipients are refused, the message is abandoned at once, with the reason.
func TestMailToDeadAddressesOnly(t *testing.T) {
	eachMail(t, "dead@acme.test, gone@acme.test", func(t *testing.T, s caller, m *mailbox, _ int64) {
		m.set(func() { m.rcpt["dead@acme.test"], m.rcpt["gone@acme.test"] = dead, "551 moved" })
		s.Upload(t, "acme/web", "main", report("a"))
		d := s.waitState(t, "ABANDONED", 1)[0]
		want := "the mail server refused " + deadText + ", gone@acme.test (551 moved); 0 of 2 recipients have it"
		if d.Attempts != 1 || d.LastError != want {
			t.Errorf("delivery %+v, want %s", d, want)
		}
		requireMails(t, m.taken())
		apitest.Eventually(t, "config_error names both", func() bool {
			got := s.configError(t)
			return strings.Contains(got, deadText) && strings.Contains(got, "gone@acme.test (551 moved)")
		})
	})
}

// A temporarily refused recipient gets the message later, and no recipient gets it twice.
func TestMailToAGreylistedAddress(t *testing.T) {
	eachMail(t, "ada@acme.test, grey@acme.test, dead@acme.test", func(t *testing.T, s caller, m *mailbox, _ int64) {
		m.set(func() { m.rcpt["grey@acme.test"], m.rcpt["dead@acme.test"] = "451 4.7.1 try later", dead })
		s.Upload(t, "acme/web", "main", report("a"))
		var d delivered
		apitest.Eventually(t, "it was tried", func() bool {
			pending := s.ledger(t, "?state=DELIVERY_STATE_PENDING")
			if len(pending) == 1 {
				d = pending[0]
			}
			return d.Attempts > 0
		})
		want := "the mail server refused " + deadText + "; the mail server did not take the message yet for grey@acme.test (451 4.7.1 try later); 1 of 3 recipients have it"
		if d.LastError != want {
			t.Errorf("delivery %+v, want %s", d, want)
		}
		m.set(func() { delete(m.rcpt, "grey@acme.test") })
		s.hurry(t)
		d = s.waitState(t, "DELIVERED", 1)[0]
		if d.LastError != "the mail server refused "+deadText+"; 2 of 3 recipients have it" {
			t.Errorf("delivery %+v", d)
		}
		mails := m.taken()
		requireMails(t, mails, "ada@acme.test", "grey@acme.test")
		if len(mails) == 2 && mails[0].id != mails[1].id {
			t.Errorf("two messages: %+v", mails)
		}
	})
}

// A replay of a partly abandoned message goes only to the remaining recipients.
func TestMailReplayedToThoseLeft(t *testing.T) {
	eachMail(t, "ada@acme.test, grey@acme.test", func(t *testing.T, s caller, m *mailbox, _ int64) {
		m.set(func() { m.rcpt["grey@acme.test"] = "451 4.7.1 try later" })
		s.Upload(t, "acme/web", "main", report("a"))
		apitest.Eventually(t, "it was sent to one", func() bool { return len(m.taken()) == 1 })
		s.change(t, func(u *ent.DeliveryUpdate) { u.SetGiveUpAt(store.Now()) })
		apitest.Eventually(t, "it was given up", func() bool {
			s.hurry(t)
			return len(s.ledger(t, "?state=DELIVERY_STATE_ABANDONED")) == 1
		})
		d := s.ledger(t, "")[0]
		if !strings.Contains(d.LastError, "1 of 2 recipients have it; given up after 24h") {
			t.Errorf("delivery %+v", d)
		}
		m.set(func() { delete(m.rcpt, "grey@acme.test") })
		s.Body(t, s.Token, http.MethodPost, s.deliveries("/"+d.ID+"/replay"), "{}", 200)
		s.waitState(t, "DELIVERED", 1)
		requireMails(t, m.taken(), "ada@acme.test", "grey@acme.test")
	})
}

// After a temporary error at any stage, or a connection lost before the final reply, the message is retried for all
// recipients.
func TestMailServerThatIsBusy(t *testing.T) {
	eachMail(t, "ada@acme.test, bob@acme.test", func(t *testing.T, s caller, m *mailbox, _ int64) {
		attempts := 0
		fails := func(want string, set func()) {
			t.Helper()
			m.set(set)
			s.hurry(t)
			attempts++
			apitest.Eventually(t, want, func() bool {
				pending := s.ledger(t, "?state=DELIVERY_STATE_PENDING")
				if len(pending) != 1 || pending[0].LastError != want {
					s.hurry(t)
					return false
				}
				return true
			})
		}
		m.set(func() { m.data = "452 full" })
		s.Upload(t, "acme/web", "main", report("a"))
		fails("the mail server refused the message with code 452", func() {})
		fails("the mail server refused the message with code 451", func() { m.data, m.dot = "", "451 busy" })
		const lost = "the mail server did not confirm the message, which may have arrived; it is sent again, with the same Message-ID"
		fails(lost, func() { m.dot = "cut" })
		if got := s.configError(t); got != "" {
			t.Errorf("config_error %s", got)
		}
		m.set(func() { m.dot = "" })
		s.hurry(t)
		d := s.waitState(t, "DELIVERED", 1)[0]
		mails := m.taken()
		requireMails(t, mails, "ada@acme.test bob@acme.test")
		m.set(func() {
			if len(m.cutMails) == 0 || len(mails) == 0 || m.cutMails[0].id != mails[0].id {
				t.Errorf("sent before the connection was lost: %+v, after it: %+v", m.cutMails, mails)
			}
		})
		if d.Attempts <= attempts || d.LastError != "" {
			t.Errorf("delivery %+v", d)
		}
	})
}
