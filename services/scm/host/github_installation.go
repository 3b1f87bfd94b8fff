package host

import (
	"context"

	"github.com/google/go-github/v84/github"
)

// InstallationIn returns the host as the application's installation in a namespace.
func (a *App) InstallationIn(ctx context.Context, namespace string) (Host, error) {
	if err := checkGitHubName("organization or user", namespace); err != nil {
		return nil, err
	}
	c, err := a.open()
	if err != nil {
		return nil, err
	}
	find := func(of func(context.Context, string) (*github.Installation, *github.Response, error)) (*github.Installation, error) {
		installation, _, err := of(ctx, namespace)
		return installation, appError(err)
	}
	installation, err := find(c.Apps.FindOrganizationInstallation)
	if Is(err, NotFound) {
		installation, err = find(c.Apps.FindUserInstallation)
	}
	if Is(err, NotFound) {
		return nil, &Error{Kind: NotFound, Text: "the application is not installed in this namespace: install it there, or set accessToken", cause: err}
	}
	if err != nil {
		return nil, err
	}
	if installation.SuspendedAt != nil {
		return nil, &Error{Kind: Forbidden, Text: "the application's installation in this namespace is suspended: let the host resume it, or set accessToken"}
	}
	return a.Installation(ctx, installation.GetID())
}
