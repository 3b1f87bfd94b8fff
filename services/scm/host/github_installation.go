package host

import (
	"context"
	"time"

	"github.com/google/go-github/v84/github"
)

// Installed is the state of an application in a namespace.
type Installed struct {
	// ID is the host's id; 0 if the application is not installed there.
	ID        int64
	Suspended bool
	ReadsCode bool
	// UpdatedAt is when the host last changed the installation; zero if it does not say.
	UpdatedAt time.Time
}

// InstalledIn asks the host whether the application is installed in a namespace.
func (a *App) InstalledIn(ctx context.Context, namespace string) (Installed, error) {
	installation, err := a.findInstallation(ctx, namespace)
	if Is(err, NotFound) {
		return Installed{}, nil
	}
	if err != nil {
		return Installed{}, err
	}
	if installation.GetID() == 0 || installation.Permissions == nil {
		return Installed{}, malformed("the host's answer is not an installation of GitHub", nil)
	}
	return Installed{
		ID: installation.GetID(), Suspended: installation.SuspendedAt != nil, ReadsCode: installation.GetPermissions().GetContents() != "",
		UpdatedAt: installation.GetUpdatedAt().Time,
	}, nil
}

// findInstallation returns a host error of the kind NotFound if the application is not installed in the namespace.
func (a *App) findInstallation(ctx context.Context, namespace string) (*github.Installation, error) {
	if err := checkGitHubName("organization or user", namespace); err != nil {
		return nil, err
	}
	c, err := a.open()
	if err != nil {
		return nil, err
	}
	find := func(of func(context.Context, string) (*github.Installation, *github.Response, error)) (*github.Installation, error) {
		return appAnswer(of(ctx, namespace))
	}
	installation, err := find(c.Apps.FindOrganizationInstallation)
	if Is(err, NotFound) {
		installation, err = find(c.Apps.FindUserInstallation)
	}
	return installation, err
}

// InstallationIn returns the host as the application's installation in a namespace.
func (a *App) InstallationIn(ctx context.Context, namespace string) (Host, error) {
	found, err := a.InstalledIn(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return a.OpenInstalled(ctx, found)
}

// OpenInstalled returns the host as the installation that InstalledIn found. It is a host error if there is none, or if
// it is suspended.
func (a *App) OpenInstalled(ctx context.Context, found Installed) (Host, error) {
	switch {
	case found.ID == 0:
		return nil, &Error{Kind: NotFound, Text: "the application is not installed in this namespace: install it there, or set accessToken"}
	case found.Suspended:
		return nil, &Error{Kind: Forbidden, Text: "the application's installation in this namespace is suspended: let the host resume it, or set accessToken"}
	}
	return a.Installation(ctx, found.ID)
}
