package platform

import (
	"cmp"
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/cloudposturecredential"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/platform/posture"
	"github.com/palisade/palisade/services/scm/connect"
)

const (
	// maxCredentials is how many cloud-posture credentials a deployment may have.
	maxCredentials = 20
	// auditCredential is their object kind in the audit trail.
	auditCredential = "cloud_posture_credential"
)

// CloudPosture is the service group "cloud-posture credentials".
type CloudPosture struct {
	platformv1.UnimplementedCloudPostureCredentialsServiceServer
	store *store.Store
	seals connect.Seals
	guard *egress.Guard
}

// NewCloudPosture serves credentials from the store. The guard checks their URLs and makes the calls of validations.
func NewCloudPosture(st *store.Store, seals connect.Seals, guard *egress.Guard) *CloudPosture {
	return &CloudPosture{store: st, seals: seals, guard: guard}
}

// CreateCloudPostureCredential stores a credential.
func (s *CloudPosture) CreateCloudPostureCredential(ctx context.Context, r *platformv1.CreateCloudPostureCredentialRequest) (*platformv1.CreateCloudPostureCredentialResponse, error) {
	if err := s.checkURLs(credential{apiURL: r.GetApiUrl(), tokenURL: r.GetTokenUrl()}); err != nil {
		return nil, err
	}
	out := &platformv1.CreateCloudPostureCredentialResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := s.store.LockDeployment(ctx, tx); err != nil {
			return err
		}
		n, err := tx.CloudPostureCredential.Query().Count(ctx)
		if err != nil {
			return err
		}
		if n >= maxCredentials {
			return apierr.FailedPrecondition("a deployment has at most %d cloud-posture credentials: delete one first", maxCredentials)
		}
		row, err := tx.CloudPostureCredential.Create().SetClientID(r.GetClientId()).SetAPIURL(r.GetApiUrl()).
			SetTokenURL(r.GetTokenUrl()).SetAudience(r.GetAudience()).Save(ctx)
		if err != nil {
			return err
		}
		sealed, err := s.seal(row, r.GetClientSecret())
		if err != nil {
			return err
		}
		if row, err = row.Update().SetClientSecret(sealed).Save(ctx); err != nil {
			return err
		}
		out.CloudPostureCredential = showCredential(row)
		audit.Change(ctx, auditCredential, row.ID, nil, out.GetCloudPostureCredential())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ListCloudPostureCredentials lists the credentials by id.
func (s *CloudPosture) ListCloudPostureCredentials(ctx context.Context, _ *platformv1.ListCloudPostureCredentialsRequest) (*platformv1.ListCloudPostureCredentialsResponse, error) {
	rows, err := s.store.Reader.CloudPostureCredential.Query().Order(ent.Asc(cloudposturecredential.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &platformv1.ListCloudPostureCredentialsResponse{}
	for _, row := range rows {
		out.CloudPostureCredentials = append(out.CloudPostureCredentials, showCredential(row))
	}
	return out, nil
}

// GetCloudPostureCredential returns a credential.
func (s *CloudPosture) GetCloudPostureCredential(ctx context.Context, r *platformv1.GetCloudPostureCredentialRequest) (*platformv1.GetCloudPostureCredentialResponse, error) {
	row, err := s.find(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	return &platformv1.GetCloudPostureCredentialResponse{CloudPostureCredential: showCredential(row)}, nil
}

// UpdateCloudPostureCredential changes the fields that are not empty.
func (s *CloudPosture) UpdateCloudPostureCredential(ctx context.Context, r *platformv1.UpdateCloudPostureCredentialRequest) (*platformv1.UpdateCloudPostureCredentialResponse, error) {
	out := &platformv1.UpdateCloudPostureCredentialResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lock(ctx, tx, r.GetId())
		if err != nil {
			return err
		}
		wanted := withChanges(row, r)
		if err := s.checkURLs(wanted); err != nil {
			return err
		}
		update := row.Update().SetClientID(wanted.clientID).SetAPIURL(wanted.apiURL).SetTokenURL(wanted.tokenURL).SetAudience(wanted.audience)
		if r.GetClientSecret() == "" {
			err = wanted.checkKept(row)
		} else {
			var sealed []byte
			if sealed, err = s.seal(row, r.GetClientSecret()); err == nil {
				update.SetClientSecret(sealed)
			}
		}
		if err != nil {
			return err
		}
		after, err := update.Save(ctx)
		if err != nil {
			return err
		}
		out.CloudPostureCredential = showCredential(after)
		audit.Change(ctx, auditCredential, row.ID, showCredential(row), out.GetCloudPostureCredential())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteCloudPostureCredential deletes a credential with its secret.
func (s *CloudPosture) DeleteCloudPostureCredential(ctx context.Context, r *platformv1.DeleteCloudPostureCredentialRequest) (*platformv1.DeleteCloudPostureCredentialResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lock(ctx, tx, r.GetId())
		if err != nil {
			return err
		}
		audit.Change(ctx, auditCredential, row.ID, showCredential(row), nil)
		return tx.CloudPostureCredential.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &platformv1.DeleteCloudPostureCredentialResponse{Success: true}, nil
}

// ValidateCloudPostureCredential tries a credential at the tool.
func (s *CloudPosture) ValidateCloudPostureCredential(ctx context.Context, r *platformv1.ValidateCloudPostureCredentialRequest) (*platformv1.ValidateCloudPostureCredentialResponse, error) {
	client, err := s.client(ctx, r)
	if err != nil {
		return nil, err
	}
	problem, err := posture.Check(ctx, s.guard, client)
	if err != nil {
		return nil, err
	}
	return &platformv1.ValidateCloudPostureCredentialResponse{Valid: problem == "", Error: problem}, nil
}

// client is the credential to try: the given one, completed from the stored one.
func (s *CloudPosture) client(ctx context.Context, r *platformv1.ValidateCloudPostureCredentialRequest) (posture.Client, error) {
	stored := &ent.CloudPostureCredential{}
	if r.GetId() != 0 {
		var err error
		if stored, err = s.find(ctx, r.GetId()); err != nil {
			return posture.Client{}, err
		}
	}
	wanted, secret := withChanges(stored, r), r.GetClientSecret()
	for _, field := range []struct{ name, value string }{
		{"clientId", wanted.clientID}, {"clientSecret", secret}, {"apiUrl", wanted.apiURL}, {"tokenUrl", wanted.tokenURL},
	} {
		if field.value == "" && r.GetId() == 0 {
			return posture.Client{}, apierr.InvalidArgument(field.name, "%s is required, unless id names a stored credential", field.name)
		}
	}
	if err := s.checkURLs(wanted); err != nil {
		return posture.Client{}, err
	}
	if secret == "" {
		if err := wanted.checkKept(stored); err != nil {
			return posture.Client{}, err
		}
		var err error
		secret, err = s.seals.Open(cloudposturecredential.Table, connect.ClientSecret, stored.DeploymentID, stored.ID, stored.ClientSecret)
		if err != nil {
			return posture.Client{}, err
		}
	}
	return posture.Client{ID: wanted.clientID, Secret: secret, TokenURL: wanted.tokenURL, APIURL: wanted.apiURL, Audience: wanted.audience}, nil
}

// partly are the fields of a credential that a request may leave empty.
type partly interface {
	GetClientId() string
	GetApiUrl() string
	GetTokenUrl() string
	GetAudience() string
}

// withChanges is the stored credential with the fields of the request that are not empty.
func withChanges(row *ent.CloudPostureCredential, r partly) credential {
	return credential{
		clientID: cmp.Or(r.GetClientId(), row.ClientID), apiURL: cmp.Or(r.GetApiUrl(), row.APIURL),
		tokenURL: cmp.Or(r.GetTokenUrl(), row.TokenURL), audience: cmp.Or(r.GetAudience(), row.Audience),
	}
}

// credential is a credential without its secret.
type credential struct{ clientID, apiURL, tokenURL, audience string }

// checkKept refuses to use the stored secret with other URLs: whoever may change them would get the secret sent to a
// host of their own.
func (c credential) checkKept(row *ent.CloudPostureCredential) error {
	if c.tokenURL != row.TokenURL {
		return apierr.InvalidArgument("clientSecret", "clientSecret is required with another tokenUrl: the stored secret is only sent to the stored tokenUrl")
	}
	if c.apiURL != row.APIURL {
		return apierr.InvalidArgument("clientSecret", "clientSecret is required with another apiUrl: tokens of the stored secret are only sent to the stored apiUrl")
	}
	return nil
}

func (s *CloudPosture) checkURLs(c credential) error {
	for _, field := range []struct{ name, value string }{{"tokenUrl", c.tokenURL}, {"apiUrl", c.apiURL}} {
		if err := s.guard.CheckURL(field.value); err != nil {
			return apierr.InvalidArgument(field.name, "%s %v", field.name, err)
		}
	}
	return nil
}

func (s *CloudPosture) seal(row *ent.CloudPostureCredential, secret string) ([]byte, error) {
	return s.seals.Seal(cloudposturecredential.Table, connect.ClientSecret, row.DeploymentID, row.ID, secret)
}

func (s *CloudPosture) find(ctx context.Context, id int64) (*ent.CloudPostureCredential, error) {
	return orNoCredential(id)(s.store.Reader.CloudPostureCredential.Query().Where(cloudposturecredential.ID(id)).Only(ctx))
}

// lock finds a credential and locks it until the end of the transaction.
func (s *CloudPosture) lock(ctx context.Context, tx *ent.Tx, id int64) (*ent.CloudPostureCredential, error) {
	query := tx.CloudPostureCredential.Query().Where(cloudposturecredential.ID(id))
	if s.store.Postgres() {
		query.ForUpdate()
	}
	return orNoCredential(id)(query.Only(ctx))
}

func orNoCredential(id int64) func(*ent.CloudPostureCredential, error) (*ent.CloudPostureCredential, error) {
	return func(row *ent.CloudPostureCredential, err error) (*ent.CloudPostureCredential, error) {
		if ent.IsNotFound(err) {
			return nil, apierr.NotFound("cloud-posture credential %d not found", id)
		}
		return row, err
	}
}

func showCredential(row *ent.CloudPostureCredential) *platformv1.CloudPostureCredential {
	return &platformv1.CloudPostureCredential{
		Id: row.ID, DeploymentId: row.DeploymentID, ClientId: row.ClientID, ApiUrl: row.APIURL, TokenUrl: row.TokenURL, Audience: row.Audience,
	}
}
