package host

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-github/v84/github"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
)

// RegisteredApp is GitHub's answer for a new application. GitHub gives it only once.
type RegisteredApp struct {
	// ID is GitHub's id, Slug the name in URLs, Name the display name.
	ID, Slug, Name string
	// ClientID and ClientSecret are for user sign-in. PrivateKey is PEM. WebhookSecret is empty for an application without
	// a webhook.
	ClientID, ClientSecret, PrivateKey, WebhookSecret string
}

// App is a GitHub application, authenticated as itself.
type App struct {
	kind    scmv1.ScmType
	baseURL string
	client  *http.Client
	id, key string
}

// RegisterApp exchanges the code of GitHub's manifest flow for the new application.
func RegisterApp(ctx context.Context, kind scmv1.ScmType, baseURL, code string, client *http.Client) (RegisteredApp, error) {
	c, err := appClient(kind, baseURL, "", client)
	if err != nil {
		return RegisteredApp{}, err
	}
	made, _, err := c.Apps.CompleteAppManifest(ctx, url.PathEscape(code))
	if err != nil {
		err = gitHubError(err)
		if Is(err, NotFound) || Is(err, Refused) {
			return RegisteredApp{}, &Error{Kind: Refused, Text: "the host does not know the code: it is good once, and for an hour; register the application again", cause: err}
		}
		return RegisteredApp{}, err
	}
	app := RegisteredApp{
		ID: strconv.FormatInt(made.GetID(), 10), Slug: made.GetSlug(), Name: made.GetName(),
		ClientID: made.GetClientID(), ClientSecret: made.GetClientSecret(), PrivateKey: made.GetPEM(), WebhookSecret: made.GetWebhookSecret(),
	}
	if _, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(app.PrivateKey)); err != nil || made.GetID() == 0 {
		return RegisteredApp{}, malformed("the host's answer is not a new application of GitHub", err)
	}
	return app, nil
}

// OpenApp returns an application; privateKey is PEM. It sends no request.
func OpenApp(kind scmv1.ScmType, baseURL, id, privateKey string, client *http.Client) *App {
	return &App{kind: kind, baseURL: baseURL, client: client, id: id, key: privateKey}
}

// SetWebhook sets the application's webhook URL and secret.
func (a *App) SetWebhook(ctx context.Context, callback, secret string) error {
	c, err := a.open()
	if err != nil {
		return err
	}
	_, err = appAnswer(c.Apps.UpdateHookConfig(ctx, &github.HookConfig{
		URL: &callback, Secret: &secret, ContentType: github.Ptr("json"), InsecureSSL: github.Ptr("0"),
	}))
	return err
}

// ReadsCode reports whether the application may read code.
func (a *App) ReadsCode(ctx context.Context) (bool, error) {
	c, err := a.open()
	if err != nil {
		return false, err
	}
	self, err := appAnswer(c.Apps.Get(ctx, ""))
	if err != nil {
		return false, err
	}
	if self.GetID() == 0 || self.Permissions == nil {
		return false, malformed("the host's answer is not an application of GitHub", nil)
	}
	return self.GetPermissions().GetContents() != "", nil
}

// Installation returns the host as an installation of the application. The credential is valid for an hour.
func (a *App) Installation(ctx context.Context, id int64) (Host, error) {
	c, err := a.open()
	if err != nil {
		return nil, err
	}
	token, err := appAnswer(c.Apps.CreateInstallationToken(ctx, id, nil))
	if err != nil {
		return nil, err
	}
	if token.GetToken() == "" {
		return nil, malformed("the host's answer is not a credential of GitHub", nil)
	}
	return Open(a.kind, a.baseURL, token.GetToken(), a.client)
}

const (
	// appTokenAge is GitHub's limit of ten minutes, less the clock tolerance.
	appTokenAge = 8 * time.Minute
	clockSkew   = time.Minute
)

// open creates a client authenticated as the application, valid for some minutes.
func (a *App) open() (*github.Client, error) {
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(a.key))
	if err != nil {
		return nil, &Error{Kind: Unauthorized, Text: "the application's private key cannot be read: delete the application and register it again", cause: err}
	}
	now := time.Now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: a.id, IssuedAt: jwt.NewNumericDate(now.Add(-clockSkew)), ExpiresAt: jwt.NewNumericDate(now.Add(appTokenAge)),
	}).SignedString(key)
	if err != nil {
		return nil, &Error{Kind: Unauthorized, Text: "the application's private key cannot be used: delete the application and register it again", cause: err}
	}
	return appClient(a.kind, a.baseURL, token, a.client)
}

func appClient(kind scmv1.ScmType, baseURL, token string, client *http.Client) (*github.Client, error) {
	if kind != scmv1.ScmType_SCM_TYPE_GITHUB && kind != scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE {
		return nil, &Error{Kind: Unsupported, Text: "only GitHub has applications"}
	}
	api, err := apiURL(kind, baseURL)
	if err != nil {
		return nil, err
	}
	return openGitHub(baseURL, api, token, client).client, nil
}

// appError is gitHubError with texts about applications instead of access tokens.
func appError(err error) error {
	err = gitHubError(err)
	switch {
	case Is(err, Unauthorized):
		return &Error{Kind: Unauthorized, Text: "the host no longer knows the application or its private key: delete the application and register it again", cause: err}
	case Is(err, NotFound):
		return &Error{Kind: NotFound, Text: "the host knows no such thing of the application: check that the application is installed and has a webhook", cause: err}
	}
	return err
}
