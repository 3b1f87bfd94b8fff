package host

import (
	"context"
	"crypto/rand"
	"encoding/base64"

	"github.com/google/go-github/v84/github"
	"golang.org/x/crypto/nacl/box"
)

// boxKey is the size of a public key of GitHub's sealed boxes, in bytes.
const boxKey = 32

// SetActionsSecret creates or replaces a secret for GitHub Actions. GitHub accepts only values that are sealed for the
// repository's public key; the value itself never leaves this process.
func (h *gitHub) SetActionsSecret(ctx context.Context, repository, name, value string) error {
	owner, repo, err := splitRepository(repository)
	if err != nil {
		return err
	}
	key, err := gitHubAnswer(h.client.Actions.GetRepoPublicKey(ctx, owner, repo))
	if err != nil {
		return err
	}
	public, err := base64.StdEncoding.DecodeString(key.GetKey())
	if err != nil || len(public) != boxKey || key.GetKeyID() == "" {
		return malformed("the host's answer is not a public key of GitHub", err)
	}
	sealed, err := box.SealAnonymous(nil, []byte(value), (*[boxKey]byte)(public), rand.Reader)
	if err != nil {
		return malformed("the public key of the repository seals nothing", err)
	}
	_, err = h.client.Actions.CreateOrUpdateRepoSecret(ctx, owner, repo, &github.EncryptedSecret{
		Name: name, KeyID: key.GetKeyID(), EncryptedValue: base64.StdEncoding.EncodeToString(sealed),
	})
	return gitHubError(err)
}

// Repository reads one repository.
func (h *gitHub) Repository(ctx context.Context, repository string) (Repository, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return Repository{}, err
	}
	found, err := gitHubAnswer(h.client.Repositories.Get(ctx, owner, name))
	if err != nil {
		return Repository{}, err
	}
	return convertGitHubRepository(found)
}
