package slackapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/slack-go/slack"
)

// Choice is what a person chose in a message about findings.
type Choice struct {
	DeploymentID, FindingID int64
	// State and Reason are words of the tables.
	State, Reason string
}

// decisions are the choices of each finding. The words are in messages, which live long: do not reuse them.
var decisions = []struct{ word, text, state, reason string }{
	{"reviewing", "I am reviewing it", "reviewing", ""},
	{"fixing", "I am fixing it", "fixing", ""},
	{"fp", "Ignore: false positive", "ignored", "false_positive"},
	{"ar", "Ignore: acceptable risk", "ignored", "acceptable_risk"},
	{"open", "Open again", "reopened", ""},
}

const (
	triageAction = "palisade-triage"
	valueFormat  = "%d:%d:%s" // deployment, finding, word
)

// Menu is the menu of decisions beside a finding.
func Menu(deploymentID, findingID int64) *slack.OverflowBlockElement {
	var options []*slack.OptionBlockObject
	for _, d := range decisions {
		text := slack.NewTextBlockObject(slack.PlainTextType, d.text, false, false)
		options = append(options, slack.NewOptionBlockObject(fmt.Sprintf(valueFormat, deploymentID, findingID, d.word), text, nil))
	}
	return slack.NewOverflowBlockElement(triageAction, options...)
}

func parseChoice(value string) (c Choice, ok bool) {
	parts := strings.Split(value, ":")
	if len(parts) != 3 {
		return c, false
	}
	var errs [2]error
	c.DeploymentID, errs[0] = strconv.ParseInt(parts[0], 10, 64)
	c.FindingID, errs[1] = strconv.ParseInt(parts[1], 10, 64)
	for _, d := range decisions {
		if d.word == parts[2] && errors.Join(errs[:]...) == nil {
			c.State, c.Reason = d.state, d.reason
			return c, true
		}
	}
	return c, false
}

// Interaction is a choice with the person and the message.
type Interaction struct {
	Choice
	TeamID, UserID, Channel, Message string
}

// Verify reports whether Slack signed the body within the last five minutes.
func (a *App) Verify(signature, timestamp string, body []byte) bool {
	if !a.Exists() {
		return false
	}
	header := http.Header{}
	header.Set("X-Slack-Signature", signature)
	header.Set("X-Slack-Request-Timestamp", timestamp)
	verifier, err := slack.NewSecretsVerifier(header, a.signing)
	if err != nil {
		return false
	}
	_, _ = verifier.Write(body) // never fails: a hash
	return verifier.Ensure() == nil
}

// ParseInteraction reads a verified body. ok is false for interactions with other elements, which need no effect.
func ParseInteraction(body []byte) (i Interaction, ok bool, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("payload") == "" {
		return i, false, errors.New("the body must be a form with the field payload")
	}
	var sent slack.InteractionCallback
	if err := json.Unmarshal([]byte(form.Get("payload")), &sent); err != nil {
		return i, false, errors.New("payload is not an interaction of Slack")
	}
	if sent.Type != slack.InteractionTypeBlockActions {
		return i, false, nil
	}
	for _, action := range sent.ActionCallback.BlockActions {
		if action.ActionID != triageAction {
			continue
		}
		if i.Choice, ok = parseChoice(action.SelectedOption.Value); ok {
			i.TeamID, i.UserID, i.Channel, i.Message = sent.Team.ID, sent.User.ID, sent.Channel.ID, sent.Container.MessageTs
			return i, true, nil
		}
	}
	return i, false, nil
}
