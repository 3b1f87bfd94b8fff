package channel

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/mailserver"
)

// mailTimeout covers all commands of one message: a mail server may do lookups before it answers.
const mailTimeout = 2 * sendTimeout

// email sends the text through the operator's mail server.
type email struct {
	to     []string
	server mailserver.Config
	guard  *egress.Guard
	plain  bool // TLS is not required
}

func newEmail(config map[string]string, guard *egress.Guard, server mailserver.Config) (*email, error) {
	if !server.Enabled() {
		return nil, errors.New("this server sends no e-mail: its operator has to set smtp and smtp-from")
	}
	to, problem := recipients(config["to"])
	if problem != "" {
		return nil, errors.New("config.to " + problem)
	}
	return newMailer(to, guard, server)
}

func newMailer(to []string, guard *egress.Guard, server mailserver.Config) (*email, error) {
	port, err := strconv.ParseUint(server.Port, 10, 16)
	if err != nil {
		return nil, err
	}
	plain := isLoopback(server.Host) || guard.Listed(server.Host, uint16(port))
	// The operator configured this server, so it does not need an entry in the allow list.
	guard, err = guard.Allowing(net.JoinHostPort(server.Host, server.Port))
	if err != nil {
		return nil, fmt.Errorf("the mail server of the setting smtp cannot be called: %w", err)
	}
	return &email{to: to, server: server, guard: guard, plain: plain}, nil
}

// CheckMail connects to the operator's mail server and signs in, as for a message. The error is for the operator.
func CheckMail(ctx context.Context, guard *egress.Guard, server mailserver.Config) error {
	e, err := newMailer(nil, guard, server)
	if err != nil {
		return err
	}
	client, err := e.client(ctx)
	if err != nil {
		return e.hide(err)
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return e.hide(err)
	}
	_ = session.Quit() // the server is usable, whatever it answers
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// Send implements Sender. The Message-ID is derived from the event, so that mail clients show a repeated message once.
// Recipients are handled one by one: accepted recipients get the message even if the server refuses others.
func (e *email) Send(ctx context.Context, m Message) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout) // its end closes the connection, also if the library stopped half-way
	defer cancel()
	message, err := e.compose(m)
	if err != nil {
		return 0, &Error{Public: "the message cannot be written as e-mail", Permanent: true, cause: err}
	}
	var left []string
	for _, address := range e.to {
		if !slices.Contains(m.DeliveredTo, address) {
			left = append(left, address)
		}
	}
	if len(left) == 0 {
		return 0, nil
	}
	if failed := e.exchange(ctx, message, left); failed != nil {
		failed.cause = e.hide(failed.cause)
		return 0, failed
	}
	return 0, nil
}

// hide removes the password from the text of an error, because a mail server can repeat what it refuses.
func (e *email) hide(err error) error {
	if err == nil || e.server.Password == "" {
		return err
	}
	user, password := e.server.User, e.server.Password
	text := err.Error()
	for _, secret := range []string{password, "\x00" + user + "\x00" + password} {
		text = strings.ReplaceAll(text, base64.StdEncoding.EncodeToString([]byte(secret)), "***")
	}
	return &hidden{strings.ReplaceAll(text, password, "***"), err}
}

// hidden is an error with another text.
type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string { return h.text }
func (h *hidden) Unwrap() error { return h.err }

func (e *email) compose(m Message) (*mail.Msg, error) {
	message := mail.NewMsg()
	if err := message.From(e.server.From); err != nil {
		return nil, err
	}
	if err := message.To(e.to...); err != nil {
		return nil, err
	}
	if m.ReplyTo != "" {
		if err := message.ReplyTo(m.ReplyTo); err != nil {
			return nil, err
		}
	}
	message.Subject(strings.Join(strings.Fields(m.Subject), " "))
	message.SetDateWithValue(m.At)
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: suppresses automatic replies
	message.SetGenHeader("X-Palisade-Event", m.EventID)
	from := e.server.From
	message.SetMessageIDWithValue(m.EventID + "@" + strings.TrimRight(from[strings.LastIndexByte(from, '@')+1:], "> "))
	text, page := withWhy(m)
	message.SetBodyString(mail.TypeTextPlain, text)
	if page != "" {
		message.AddAlternativeString(mail.TypeTextHTML, page)
	}
	return message, nil
}

// withWhy appends why the reader gets the message, in the form of a signature (RFC 3676). There is no List-Unsubscribe:
// a rule is for all its readers, so none of them can end it alone.
func withWhy(m Message) (text, page string) {
	if m.Why == "" {
		return m.Text, m.HTML
	}
	text = strings.TrimRight(m.Text, "\n") + "\n\n-- \n" + m.Why + "\n"
	return text, strings.Replace(m.HTML, "</body>", `<p style="color:#59636e;font-size:12px">`+html.EscapeString(m.Why)+"</p></body>", 1)
}

func (e *email) client(ctx context.Context) (*mail.Client, error) {
	port, err := strconv.Atoi(e.server.Port)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{ServerName: e.server.Host, MinVersion: tls.VersionTLS12}
	options := []mail.Option{
		mail.WithPort(port),
		mail.WithTimeout(sendTimeout),
		mail.WithTLSConfig(config),
		mail.WithDialContextFunc(e.dial(ctx, config)),
	}
	switch {
	case e.server.ImplicitTLS:
		options = append(options, mail.WithSSL())
	case e.plain:
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if e.server.User != "" {
		// The library sends passwords without TLS only to the loopback interface.
		options = append(options, mail.WithUsername(e.server.User), mail.WithPassword(e.server.Password),
			mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthSCRAMSHA1, mail.SMTPAuthCramMD5, mail.SMTPAuthPlain, mail.SMTPAuthLogin))
	}
	return mail.NewClient(e.server.Host, options...)
}

// dial connects through the guard. The connection's deadline is the end of the whole exchange, because the library sets
// one per command only. For smtps it also starts TLS, because the library leaves that to the dialer.
func (e *email) dial(sending context.Context, config *tls.Config) mail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := e.guard.Connect(sending, network, address, mailTimeout)
		if err != nil || !e.server.ImplicitTLS {
			return conn, err
		}
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return secured, nil
	}
}
