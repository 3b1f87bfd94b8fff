package slackapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/palisade/palisade/services/internal/egress"
)

// Scopes are what an installation asks for: to post, also to public channels that the app is not in; to list channels;
// and to read the e-mail address of whoever presses a button.
var Scopes = []string{"channels:read", "chat:write", "chat:write.public", "groups:read", "users:read", "users:read.email"}

// ErrNoApp is the error of a server without a Slack app.
var ErrNoApp = errors.New("this server has no Slack app: the operator sets slack-client-id, slack-client-secret and slack-signing-secret")

const (
	timeout   = 15 * time.Second
	maxAnswer = 4 << 20
)

// App is the operator's app. Its methods return errors of Slack as [*slack.RateLimitedError] and
// [slack.SlackErrorResponse]; Describe shows them to people.
type App struct {
	// ClientID identifies the app. It is empty on a server without one.
	ClientID string
	// URL is where Slack is, without a slash at the end.
	URL string

	secret, signing string
	client          *http.Client
}

// New returns the app. Without a client id it can do nothing.
func New(clientID, secret, signing, address string, guard *egress.Guard) *App {
	return &App{
		ClientID: clientID, URL: strings.TrimSuffix(address, "/"), secret: secret, signing: signing,
		client: guard.Client(egress.Limits{Timeout: timeout, MaxResponse: maxAnswer}),
	}
}

// Exists reports whether the operator has an app.
func (a *App) Exists() bool { return a.ClientID != "" }

// API is the base URL of Slack's Web API.
func (a *App) API() string { return a.URL + "/api/" }

func (a *App) as(token string) *slack.Client {
	return slack.New(token, slack.OptionAPIURL(a.API()), slack.OptionHTTPClient(a.client))
}

// AuthorizeURL is the page where a person of a workspace approves the app. Slack then opens redirect with a code and
// the state.
func (a *App) AuthorizeURL(state, redirect string) string {
	query := url.Values{"client_id": {a.ClientID}, "scope": {strings.Join(Scopes, ",")}, "state": {state}, "redirect_uri": {redirect}}
	return a.URL + "/oauth/v2/authorize?" + query.Encode()
}

// Installation is the app in a workspace.
type Installation struct {
	Token                        string
	AppID, TeamID, TeamName      string
	EnterpriseID, EnterpriseName string
	URL                          string // of the workspace
	Scopes                       []string
}

// Exchange turns the code of an approval into an installation.
func (a *App) Exchange(ctx context.Context, code, redirect string) (*Installation, error) {
	granted, err := slack.GetOAuthV2ResponseContext(ctx, a.client, a.ClientID, a.secret, code, redirect, slack.OAuthOptionAPIURL(a.API()))
	switch {
	case err != nil:
		return nil, err
	case granted.IsEnterpriseInstall || granted.Team.ID == "":
		return nil, slack.SlackErrorResponse{Err: orgInstall}
	case granted.ExpiresIn != 0:
		return nil, slack.SlackErrorResponse{Err: rotatingToken}
	}
	workspace, err := a.as(granted.AccessToken).AuthTestContext(ctx)
	if err != nil {
		return nil, err
	}
	scopes := strings.Split(granted.Scope, ",")
	slices.Sort(scopes)
	return &Installation{
		Token: granted.AccessToken, AppID: granted.AppID, TeamID: granted.Team.ID, TeamName: granted.Team.Name,
		EnterpriseID: granted.Enterprise.ID, EnterpriseName: granted.Enterprise.Name, URL: workspace.URL, Scopes: scopes,
	}, nil
}

// Revoke gives a token back. One that Slack does not know any more is no error.
func (a *App) Revoke(ctx context.Context, token string) error {
	_, err := a.as(token).SendAuthRevokeContext(ctx, token)
	if Lost(err) {
		return nil
	}
	return err
}

// Channels lists channels that are not archived. Slack may answer fewer than limit on any page. next is empty after the
// last page.
func (a *App) Channels(ctx context.Context, token, cursor string, limit int) (list []slack.Channel, next string, err error) {
	return a.as(token).GetConversationsContext(ctx, &slack.GetConversationsParameters{
		Cursor: cursor, Limit: limit, ExcludeArchived: true, Types: []string{"public_channel", "private_channel"},
	})
}

// Email is the confirmed address of a person of the workspace. problem says why a person has none that counts.
func (a *App) Email(ctx context.Context, token, teamID, userID string) (email, problem string, err error) {
	who, err := a.as(token).GetUserInfoContext(ctx, userID)
	switch {
	case err != nil:
		return "", "", err
	case who.Deleted, who.IsBot, who.IsStranger, who.TeamID != "" && who.TeamID != teamID:
		return "", "you are no member of the workspace in which Palisade is installed", nil
	case who.Profile.Email == "" || !who.IsEmailConfirmed:
		return "", "Slack knows no confirmed e-mail address of you", nil
	}
	return who.Profile.Email, "", nil
}

// Reply writes in the thread of a message.
func (a *App) Reply(ctx context.Context, token, channel, thread, text string) error {
	_, _, err := a.as(token).PostMessageContext(ctx, channel, slack.MsgOptionText(text, false), slack.MsgOptionTS(thread))
	return err
}

// Whisper writes in the thread of a message what only one person sees.
func (a *App) Whisper(ctx context.Context, token, channel, thread, userID, text string) error {
	_, err := a.as(token).PostEphemeralContext(ctx, channel, userID, slack.MsgOptionText(text, false), slack.MsgOptionTS(thread))
	return err
}

// Words of Slack for tokens that no longer work, and two of our own.
var lost = []string{"account_inactive", "invalid_auth", "not_authed", "team_access_not_granted", "token_expired", "token_revoked"}

const (
	orgInstall    = "org_install"
	rotatingToken = "rotating_token"
)

// Lost reports whether Slack no longer accepts the token.
func Lost(err error) bool {
	var said slack.SlackErrorResponse
	return errors.As(err, &said) && slices.Contains(lost, said.Err)
}

var explained = map[string]string{
	orgInstall:          "the app was installed for a whole organization: install it in one workspace",
	rotatingToken:       "token rotation is on for the app: turn it off in the app's settings at Slack, and install again",
	"invalid_code":      "Slack does not know the code: start the installation again",
	"code_already_used": "the code was used before: start the installation again",
	"bad_redirect_uri":  "the app at Slack does not list this server's redirect URL: add <public-url>/console/chat-app under OAuth & Permissions",
	"bad_client_secret": "Slack refuses the client secret: the operator sets slack-client-secret",
	"invalid_client_id": "Slack does not know the client id: the operator sets slack-client-id",
	"missing_scope":     "the installation lacks a scope: install the app again",
	"channel_not_found": "Slack finds no such channel: a private channel needs the app as a member (/invite it there)",
	"not_in_channel":    "the app is not in the channel: /invite it there",
	"is_archived":       "the channel is archived",
	"restricted_action": "the workspace does not let the app post there",
	"user_not_found":    "Slack does not know the person",
	"msg_too_long":      "Slack finds the message too long",
}

// Wait is how long Slack wants no request; limited is false if it did not say that.
func Wait(err error) (wait time.Duration, limited bool) {
	var said *slack.RateLimitedError
	if errors.As(err, &said) {
		return said.RetryAfter, true
	}
	return 0, false
}

// Describe says what failed, for the people of a deployment. ok is false if Slack did not answer in its form.
func Describe(err error) (text string, ok bool) {
	var said slack.SlackErrorResponse
	wait, limited := Wait(err)
	switch {
	case limited:
		return fmt.Sprintf("Slack wants fewer requests: try again in %s", wait), true
	case Lost(err):
		return "Slack no longer accepts the token, because the app was removed from the workspace: install it again", true
	case errors.As(err, &said):
		if text := explained[said.Err]; text != "" {
			return text, true
		}
		return fmt.Sprintf("Slack answered %.100q", said.Err), true
	}
	return egress.Describe(err), false
}
