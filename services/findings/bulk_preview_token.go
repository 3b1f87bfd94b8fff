package findings

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/secret"
)

// previewLife is how long a preview can be applied: long enough to read it.
const previewLife = 15 * time.Minute

// previewTime is in every preview token: the time of the preview in microseconds.
type previewTime struct {
	Now int64 `json:"n"`
}

// previewed is the content of the token of a bulk update: what the caller was shown. Relative times of the filter count
// from its time.
type previewed struct {
	previewTime
	Revision string `json:"r"`
	// Change is the id of the last change when an update with a note was shown. Notes do not change the revision.
	Change  int64       `json:"h,omitempty"`
	Numbers bulkNumbers `json:"c"`
}

// previewTokens seals previews. A token belongs to one request of one caller in one deployment.
type previewTokens struct{ keyring *secret.Keyring }

// purpose binds a token to the caller, the deployment, the caller's teams and the request.
func (previewTokens) purpose(ctx context.Context, r proto.Message) ([]byte, error) {
	p, ok := access.FromContext(ctx)
	deploymentID, in := tenant.FromContext(ctx)
	if !ok || !in {
		return nil, fmt.Errorf("a preview without a caller or a deployment")
	}
	request, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "preview of %s %d %s %d %s %x", r.ProtoReflect().Descriptor().FullName(), deploymentID, p.Kind, p.ID, tenant.Visibility(ctx), sha256.Sum256(request)), nil
}

func (t previewTokens) seal(ctx context.Context, r proto.Message, shown any) (string, error) {
	purpose, err := t.purpose(ctx, r)
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(shown)
	if err != nil {
		return "", err
	}
	sealed, err := t.keyring.Seal(plain, purpose)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// open reads what was shown into a pointer. It refuses the token of another request or caller, and an expired one.
func (t previewTokens) open(ctx context.Context, r proto.Message, token string, now time.Time, shown any) error {
	purpose, err := t.purpose(ctx, r)
	if err != nil {
		return err
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return foreignPreview()
	}
	plain, err := t.keyring.Unseal(sealed, purpose)
	if err != nil {
		return foreignPreview()
	}
	var at previewTime
	if err := json.Unmarshal(plain, &at); err != nil {
		return err
	}
	if age := now.Sub(time.UnixMicro(at.Now)); age > previewLife {
		return apierr.Conflict("the preview has expired after %s: preview the update again", previewLife)
	}
	return json.Unmarshal(plain, shown)
}

func foreignPreview() error {
	return apierr.InvalidArgument("previewToken",
		"previewToken is not valid for this request: send the same fields as for the preview, as the same caller, or preview again")
}
