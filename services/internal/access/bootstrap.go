package access

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/gosimple/slug"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// AdminEmail is the address of the user that the first start creates. It is local to the server and gets no mail.
	AdminEmail = "admin@localhost"

	defaultSlug   = "default"
	maxSlug       = 63
	maxName       = 200
	bootstrapLock = "bootstrap_lock"
)

// slugForm is the form of a slug, which appears in paths, URLs and file names.
var slugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$`)

// BootstrapOptions describe what the first start creates.
type BootstrapOptions struct {
	// Slug of the deployment. Empty means derived from Name, or "default".
	Slug string
	// Name is the display name of the deployment. Empty means the slug.
	Name string
	// Token is the value of the first API token, if the operator chose it. Empty means a generated value.
	Token string
	// PoliciesMigrated lets the deployment begin with detection policies only.
	PoliciesMigrated bool
}

// FirstStart describes what the first start created.
type FirstStart struct {
	Deployment *ent.Deployment
	// Email of the administrator.
	Email string
	// TokenValue must be shown once. It is empty when the operator chose the value: the operator knows it, and printed
	// values end up in logs.
	TokenValue string
	// TokenHint is the last four characters of the token.
	TokenHint string
}

// Bootstrap gives an empty store its first deployment, an administrator and an API token with all permissions. It
// returns nil when the store already has a deployment. When several nodes start at once on one store, one of them
// creates the set and returns it. Errors: INVALID_ARGUMENT naming the option, also when the store is not empty.
func Bootstrap(ctx context.Context, st *store.Store, o BootstrapOptions) (*FirstStart, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	ctx = tenant.System(ctx)
	exists, err := st.Reader.Deployment.Query().Exist(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for a deployment: %w", err)
	}
	if exists {
		return nil, nil
	}
	var first *FirstStart
	err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		if err := serialize(ctx, tx, bootstrapLock); err != nil {
			return err
		}
		exists, err := tx.Deployment.Query().Exist(ctx)
		if err != nil || exists {
			return err
		}
		first, err = createFirst(ctx, tx, o)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create the first deployment: %w", err)
	}
	return first, nil
}

func (o BootstrapOptions) complete() (BootstrapOptions, error) {
	if o.Slug == "" {
		o.Slug = slugOf(o.Name)
	}
	if o.Name == "" {
		o.Name = o.Slug
	}
	if !slugForm.MatchString(o.Slug) {
		return o, apierr.InvalidArgument("deployment",
			"the deployment's slug must have 1 to %d lower-case letters, digits, - and _, with a letter or digit at both ends, got %q", maxSlug, o.Slug)
	}
	if len(o.Name) > maxName {
		return o, apierr.InvalidArgument("deployment_name", "the deployment's name may have up to %d bytes, got %d", maxName, len(o.Name))
	}
	if o.Token != "" {
		if err := CheckTokenValue(o.Token); err != nil {
			return o, apierr.InvalidArgument("bootstrap_token", "%v", err)
		}
	}
	return o, nil
}

// slugOf makes a slug from a name in any script.
func slugOf(name string) string {
	made := slug.Make(name)
	if len(made) > maxSlug {
		made = made[:maxSlug]
	}
	for made != "" && !slugForm.MatchString(made) {
		made = made[:len(made)-1]
	}
	if made == "" {
		return defaultSlug
	}
	return made
}

func createFirst(ctx context.Context, tx *ent.Tx, o BootstrapOptions) (*FirstStart, error) {
	now := time.Now()
	create := tx.Deployment.Create().SetSlug(o.Slug).SetName(o.Name).SetCreatedAt(store.Micros(now))
	if o.PoliciesMigrated {
		create.SetPoliciesMigratedAt(store.Micros(now))
	}
	d, err := create.Save(ctx)
	if err != nil {
		return nil, err
	}
	admin, err := ensureAdmin(ctx, tx, now)
	if err != nil {
		return nil, err
	}
	err = tx.Membership.Create().SetDeploymentID(d.ID).SetUserID(admin.ID).
		SetRole(string(RoleAdmin)).SetCreatedAt(store.Micros(now)).Exec(ctx)
	if err != nil {
		return nil, err
	}
	value, first := o.Token, &FirstStart{Deployment: d, Email: admin.Email}
	if value == "" {
		value = newTokenValue()
		first.TokenValue = value
	}
	spec := TokenSpec{DeploymentID: d.ID, UserID: admin.ID, Name: "bootstrap", Scopes: []Scope{ScopeWebAPI, ScopeAgent}, Role: RoleAdmin, ofDeployment: true}
	row, err := insertToken(ctx, tx, spec, value, now)
	if err != nil {
		return nil, err
	}
	first.TokenHint = row.Hint
	return first, nil
}

// ensureAdmin returns the administrator of an earlier first start, if all deployments were removed since, or creates
// one.
func ensureAdmin(ctx context.Context, tx *ent.Tx, now time.Time) (*ent.User, error) {
	row, err := tx.User.Query().Where(user.Email(AdminEmail)).Only(ctx)
	if !ent.IsNotFound(err) {
		return row, err
	}
	return tx.User.Create().SetEmail(AdminEmail).SetName("Administrator").SetCreatedAt(store.Micros(now)).Save(ctx)
}
