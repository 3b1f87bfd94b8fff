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

// RegisteredApp is what GitHub tells of a new application, once.
type RegisteredApp struct {
	// ID is GitHub's number; Slug is the name in URLs, Name the one for people.
	ID, Slug, Name string
	// ClientID and ClientSecret are for signing people in; PrivateKey is PEM; WebhookSecret is empty for an application
	// that was made without a webhook.
	ClientID, ClientSecret, PrivateKey, WebhookSecret string
}

// App is an application of GitHub, acting as itself.
type App struct {
	kind    scmv1.ScmType
	baseURL string
	client  *http.Client
	id, key string
}

// RegisterApp exchanges the code of GitHub's manifest flow for the application that was made.
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

// OpenApp returns an application; privateKey is PEM. Nothing is called yet.
func OpenApp(kind scmv1.ScmType, baseURL, id, privateKey string, client *http.Client) *App {
	return &App{kind: kind, baseURL: baseURL, client: client, id: id, key: privateKey}
}

// SetWebhook points the application's webhook to a URL, with a secret to sign with.
func (a *App) SetWebhook(ctx context.Context, callback, secret string) error {
	c, err := a.open()
	if err != nil {
		return err
	}
	_, _, err = c.Apps.UpdateHookConfig(ctx, &github.HookConfig{
		URL: &callback, Secret: &secret, ContentType: github.Ptr("json"), InsecureSSL: github.Ptr("0"),
	})
	return appError(err)
}

// ReadsCode asks what the application may do.
func (a *App) ReadsCode(ctx context.Context) (bool, error) {
	c, err := a.open()
	if err != nil {
		return false, err
	}
	self, _, err := c.Apps.Get(ctx, "")
	if err != nil {
		return false, appError(err)
	}
	return self.GetPermissions().GetContents() != "", nil
}

// Installation returns the host as an installation of the application sees it. The credential is good for an hour.
func (a *App) Installation(ctx context.Context, id int64) (Host, error) {
	c, err := a.open()
	if err != nil {
		return nil, err
	}
	token, _, err := c.Apps.CreateInstallationToken(ctx, id, nil)
	if err != nil {
		return nil, appError(err)
	}
	if token.GetToken() == "" {
		return nil, malformed("the host's answer is not a credential of GitHub", nil)
	}
	return Open(a.kind, a.baseURL, token.GetToken(), a.client)
}

const (
	// appTokenAge is GitHub's limit of ten minutes, less what clocks may differ by.
	appTokenAge = 8 * time.Minute
	clockSkew   = time.Minute
)

// open makes a client that is the application, for some minutes.
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

// appError is gitHubError, with the texts that speak of an access token in the words of applications.
func appError(err error) error {
	err = gitHubError(err)
	switch {
	case Is(err, Unauthorized):
		return &Error{Kind: Unauthorized, Text: "the host does not know the application any more, or not its private key: delete the application and register it again", cause: err}
	case Is(err, NotFound):
		return &Error{Kind: NotFound, Text: "the host knows no such thing of the application: check that the application is installed and has a webhook", cause: err}
	}
	return err
}
