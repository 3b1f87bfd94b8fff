package channel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackutilsx"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/notifications/slackapp"
)

const (
	// maxMenus is the maximum number of findings with a menu of decisions: Slack takes 50 blocks in a message.
	maxMenus = 20
	// maxSection is the maximum length of a block's text, in bytes; Slack takes 3,000 characters.
	maxSection = 2900
)

// slackApp posts to a channel of the workspace in which the app is installed.
type slackApp struct {
	channel string
	api     *slack.Client
}

// OpenSlackApp creates the sender of a rule of [SlackApp]. api is the base URL of Slack's Web API.
func OpenSlackApp(api, token, channelID string, guard *egress.Guard) Sender {
	client := guard.Client(egress.Limits{Timeout: sendTimeout, MaxResponse: maxAnswer})
	client.Transport = answerTransport{client.Transport}
	return &slackApp{channel: channelID, api: slack.New(token, slack.OptionAPIURL(api), slack.OptionHTTPClient(client))}
}

// Send implements Sender.
func (s *slackApp) Send(ctx context.Context, m Message) (int, error) {
	ctx, answer := withAnswer(ctx)
	options := []slack.MsgOption{slack.MsgOptionText(slackText(m), false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl()}
	if blocks := slackBlocks(m); len(blocks) > 0 {
		options = append(options, slack.MsgOptionBlocks(blocks...))
	}
	_, _, err := s.api.PostMessageContext(ctx, s.channel, options...)
	if err == nil {
		return answer.status, nil
	}
	text, said := slackapp.Describe(err)
	e := &Error{Public: text, cause: err}
	wait, limited := slackapp.Wait(err)
	switch {
	case limited:
		e.RetryAfter = wait
	case !said && answer.status != 0:
		if e = statusError("Slack", answer.status, answer.header); e == nil {
			e = &Error{Public: "Slack gave an answer that is not one of its API"}
		}
		e.cause = err
	case said && answer.status == http.StatusOK:
		e.Permanent = slackRefuses(err)
	}
	return answer.status, e
}

// slackRefuses reports whether the same message would be refused again. Missing channels and rights can be mended.
func slackRefuses(err error) bool {
	var said slack.SlackErrorResponse
	return errors.As(err, &said) && (said.Err == "msg_too_long" || said.Err == "invalid_blocks" || said.Err == "is_archived")
}

// slackBlocks shows findings with a menu of decisions each; nil for other messages.
func slackBlocks(m Message) (blocks []slack.Block) {
	deploymentID, link, named := payload.Named(m.Payload)
	if len(named) == 0 {
		return nil
	}
	head := "*" + slackLine(m.Subject) + "*"
	if link != "" {
		head += "\n<" + link + "|Open the list>"
	}
	blocks = append(blocks, slackSection(head))
	for _, f := range named[:min(len(named), maxMenus)] {
		section := slackSection(slackFinding(f))
		section.Accessory = slack.NewAccessory(slackapp.Menu(deploymentID, f.ID))
		blocks = append(blocks, section)
	}
	var rest strings.Builder
	for i, f := range named[min(len(named), maxMenus):] {
		line := slackFinding(f) + "\n"
		if rest.Len()+len(line) > maxSection {
			fmt.Fprintf(&rest, "and %d more", len(named)-maxMenus-i)
			break
		}
		rest.WriteString(line)
	}
	if rest.Len() > 0 {
		blocks = append(blocks, slackSection(rest.String()))
	}
	return blocks
}

func slackSection(text string) *slack.SectionBlock {
	return slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, text, false, false), nil, nil)
}

func slackFinding(f payload.DigestFinding) string {
	place := slackLine(f.Path)
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Line)
	}
	return fmt.Sprintf("*%s* %s\n%s, finding %d\n%s", f.Severity, slackLine(f.Rule), place, f.ID, slackLine(f.Message))
}

// slackLine escapes external text: it must not mention a channel or create a link.
func slackLine(text string) string {
	return slackutilsx.EscapeMessage(strings.ReplaceAll(text, "*", "∗"))
}
