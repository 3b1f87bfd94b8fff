package channel

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

const (
	// quitTimeout is the timeout of QUIT after the message was accepted.
	quitTimeout = time.Second
	// maxReply is the maximum length of a stored mail server reply, in bytes. shownAddresses is the maximum number of
	// addresses in an error.
	maxReply       = 120
	shownAddresses = 4
	// serviceClosing is the code of a server that ends the session, as a reply to any command (RFC 5321, 3.8).
	serviceClosing = 421
	// serverUnusable is the error text if the session failed before the message.
	serverUnusable = "the mail server of this Palisade could not be used"
)

// exchange sends the message to the remaining recipients; nil means that all recipients have it.
func (e *email) exchange(ctx context.Context, message *mail.Msg, left []string) *Error {
	client, err := e.client(ctx)
	if err != nil {
		return &Error{Public: "the mail server of this Palisade is not configured as it must be", cause: err}
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return &Error{Public: serverUnusable, cause: err}
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := session.UpdateDeadline(time.Until(deadline)); err != nil {
			return &Error{Public: serverUnusable, cause: err}
		}
	}
	return e.transact(session, message, left)
}

// answers holds the mail server's reply for each recipient.
type answers struct {
	accepted       []string
	refused, later map[string]string // with the reply
}

// transact performs one mail transaction: the sender, each recipient, and the message for the accepted recipients.
func (e *email) transact(session *smtp.Client, message *mail.Msg, left []string) *Error {
	from, err := message.GetSender(false)
	if err == nil {
		err = session.Mail(from)
	}
	if err != nil {
		return mailError(err)
	}
	said := answers{refused: map[string]string{}, later: map[string]string{}}
	for _, address := range left {
		err := session.Rcpt((&netmail.Address{Address: address}).String())
		switch code, reply := replyOf(err); {
		case err == nil:
			said.accepted = append(said.accepted, address)
		case code == 0 || code == serviceClosing: // the session is over and no recipient got the message
			return mailError(err)
		case code >= 500:
			said.refused[address] = reply
		default:
			said.later[address] = reply
		}
	}
	if len(said.accepted) > 0 {
		if failed := sendData(session, message); failed != nil {
			if len(said.refused) > 0 && !failed.Permanent {
				failed.Public, failed.Refused = failed.Public+"; it refused "+listed(said.refused), said.refused
			}
			return failed
		}
	}
	// The message was accepted: a later error concerns only QUIT.
	if session.UpdateDeadline(quitTimeout) == nil {
		_ = session.Quit()
	}
	return said.failure(len(e.to)-len(said.refused)-len(said.later), len(e.to))
}

// sendData sends the message data.
func sendData(session *smtp.Client, message *mail.Msg) *Error {
	body, err := session.Data()
	if err != nil {
		return mailError(err)
	}
	if _, err := message.WriteTo(body); err != nil {
		return &Error{Public: serverUnusable, cause: err}
	}
	if err := body.Close(); err != nil {
		if code, _ := replyOf(err); code != 0 {
			return mailError(err)
		}
		return &Error{
			Public: "the mail server did not confirm the message, which may have arrived; it is sent again, with the same Message-ID", cause: err,
		}
	}
	return nil
}

// failure converts the replies to an error. have of all recipients have the message.
func (a answers) failure(have, all int) *Error {
	if len(a.refused)+len(a.later) == 0 {
		return nil
	}
	var parts []string
	if len(a.refused) > 0 {
		parts = append(parts, "the mail server refused "+listed(a.refused))
	}
	if len(a.later) > 0 {
		parts = append(parts, "the mail server did not take the message yet for "+listed(a.later))
	}
	return &Error{
		Public:    fmt.Sprintf("%s; %d of %d recipients have it", strings.Join(parts, "; "), have, all),
		Permanent: len(a.later) == 0, Accepted: a.accepted, Refused: a.refused,
	}
}

// listed formats addresses with the mail server's replies.
func listed(replies map[string]string) string {
	var parts []string
	for address := range replies {
		parts = append(parts, address)
	}
	slices.Sort(parts)
	more := len(parts) - shownAddresses
	parts = parts[:min(len(parts), shownAddresses)]
	for i, address := range parts {
		parts[i] = fmt.Sprintf("%s (%s)", address, replies[address])
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// mailError reports only the code of the mail server's reply to the message: its text may name machines and accounts of
// the operator.
func mailError(err error) *Error {
	code, _ := replyOf(err)
	if code == 0 {
		return &Error{Public: serverUnusable, cause: err}
	}
	return &Error{Public: fmt.Sprintf("the mail server refused the message with code %d", code), Permanent: code >= 500, cause: err}
}

// ipAddress matches a possible IP address.
var ipAddress = regexp.MustCompile(`\[?\b(\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){3,7})\]?`)

// replyOf returns a mail server's reply: its code (0 if none), and the code and text as one short line of plain
// characters. The text is about an address of the tenant, who may read it; IP addresses are removed.
func replyOf(err error) (code int, reply string) {
	var answer *textproto.Error
	if !errors.As(err, &answer) || answer.Code < 400 {
		return 0, ""
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, answer.Msg)
	text = ipAddress.ReplaceAllString(text, "***")
	text = strings.Join(strings.Fields(fmt.Sprintf("%d %s", answer.Code, text)), " ")
	if len(text) > maxReply {
		text = text[:maxReply] + "..."
	}
	return answer.Code, text
}
