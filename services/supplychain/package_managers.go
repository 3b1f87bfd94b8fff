package supplychain

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/packagemanagerconfig"
	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// auditKind is the object kind of configurations in the audit trail.
const auditKind = "package_manager_config"

// PackageManagers is the service group "package manager configurations".
type PackageManagers struct {
	supplychainv1.UnimplementedPackageManagerConfigurationsServiceServer
	store   *store.Store
	keyring *secret.Keyring
	egress  *egress.Guard
}

// NewPackageManagers serves package manager configurations from the store. The keyring seals their credentials; guard
// validates registry URLs.
func NewPackageManagers(st *store.Store, keyring *secret.Keyring, guard *egress.Guard) *PackageManagers {
	return &PackageManagers{store: st, keyring: keyring, egress: guard}
}

// PostPackageManagerAuthCredentials creates a configuration (contract operation 3).
func (s *PackageManagers) PostPackageManagerAuthCredentials(ctx context.Context, r *supplychainv1.PostPackageManagerAuthCredentialsRequest) (*supplychainv1.PostPackageManagerAuthCredentialsResponse, error) {
	given := r.GetPackageManagerConfigForInsert()
	sent, err := credentialsOf(given)
	if err != nil {
		return nil, err
	}
	wanted := withDefaults(given.GetConfig())
	if err := s.check(wanted, sent.kind); err != nil {
		return nil, err
	}
	var out *supplychainv1.PackageManagerConfig
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		deploymentID, _ := tenant.FromContext(ctx)
		now := store.Now()
		create := tx.PackageManagerConfig.Create().SetDeploymentID(deploymentID).SetCreatedAt(now)
		if err := assign(create.Mutation(), wanted, sent.kind, now); err != nil {
			return err
		}
		row, err := create.Save(ctx)
		if err != nil {
			return nameTaken(err, wanted.GetName())
		}
		if sent.kind != "" {
			// The sealed value is bound to the id, which is known only now.
			sealed, err := s.seal(row.ID, sent)
			if err != nil {
				return err
			}
			if err := row.Update().SetCredentials(sealed).Exec(ctx); err != nil {
				return err
			}
		}
		if out, err = convert(row); err == nil {
			audit.Change(ctx, auditKind, row.ID, nil, out)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &supplychainv1.PostPackageManagerAuthCredentialsResponse{PackageManagerConfig: out}, nil
}

// GetPackageManagerAuthConfigs lists the configurations of the deployment by id. It does not read the credentials.
func (s *PackageManagers) GetPackageManagerAuthConfigs(ctx context.Context, _ *supplychainv1.GetPackageManagerAuthConfigsRequest) (*supplychainv1.GetPackageManagerAuthConfigsResponse, error) {
	query := s.store.Reader.PackageManagerConfig.Query().Order(ent.Asc(packagemanagerconfig.FieldID))
	query.Select(shownColumns...)
	rows, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	response := &supplychainv1.GetPackageManagerAuthConfigsResponse{}
	for _, row := range rows {
		config, err := convert(row)
		if err != nil {
			return nil, err
		}
		response.PackageManagerConfigsWithCredentials = append(response.PackageManagerConfigsWithCredentials,
			&supplychainv1.PackageManagerConfigWithCredentials{Config: config})
	}
	return response, nil
}

// UpdatePackageManagerAuthCredentials changes the fields in the request. The proto describes what happens to the
// others.
func (s *PackageManagers) UpdatePackageManagerAuthCredentials(ctx context.Context, r *supplychainv1.UpdatePackageManagerAuthCredentialsRequest) (*supplychainv1.UpdatePackageManagerAuthCredentialsResponse, error) {
	given := r.GetPackageManagerConfigForInsert()
	sent, err := credentialsOf(given)
	if err != nil {
		return nil, err
	}
	var out *supplychainv1.PackageManagerConfig
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lock(ctx, tx, r.GetPackageManagerConfigId())
		if err != nil {
			return err
		}
		before, err := convert(row)
		if err != nil {
			return err
		}
		out = merge(before, given.GetConfig())
		if proto.Equal(before, out) && sent.kind == "" {
			return nil
		}
		update, err := s.change(row, out, sent)
		if err != nil {
			return err
		}
		if row, err = update.Save(ctx); err != nil {
			return nameTaken(err, out.GetName())
		}
		if out, err = convert(row); err == nil {
			audit.Change(ctx, auditKind, row.ID, before, out)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &supplychainv1.UpdatePackageManagerAuthCredentialsResponse{PackageManagerConfig: out}, nil
}

// DeletePackageManagerAuthConfigs deletes a configuration with its credentials.
func (s *PackageManagers) DeletePackageManagerAuthConfigs(ctx context.Context, r *supplychainv1.DeletePackageManagerAuthConfigsRequest) (*supplychainv1.DeletePackageManagerAuthConfigsResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lock(ctx, tx, r.GetPackageManagerConfigId())
		if err != nil {
			return err
		}
		before, err := convert(row)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditKind, row.ID, before, nil)
		return tx.PackageManagerConfig.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &supplychainv1.DeletePackageManagerAuthConfigsResponse{PackageManagerConfigId: r.GetPackageManagerConfigId()}, nil
}

// change decides the credentials of a changed configuration: the ones in the request, the stored ones, or none.
func (s *PackageManagers) change(row *ent.PackageManagerConfig, wanted *supplychainv1.PackageManagerConfig, sent credentials) (*ent.PackageManagerConfigUpdateOne, error) {
	kind := sent.kind
	if kind == "" && wanted.GetRequiresAuth() {
		kind = kindOf(row)
	}
	if err := s.check(wanted, kind); err != nil {
		return nil, err
	}
	update := row.Update()
	if err := assign(update.Mutation(), wanted, kind, store.Now()); err != nil {
		return nil, err
	}
	switch {
	case kind == "":
		update.ClearCredentials()
	case sent.kind != "":
		sealed, err := s.seal(row.ID, sent)
		if err != nil {
			return nil, err
		}
		update.SetCredentials(sealed)
	}
	return update, nil
}

// lock finds a configuration and locks it until the end of the transaction.
func (s *PackageManagers) lock(ctx context.Context, tx *ent.Tx, id int64) (*ent.PackageManagerConfig, error) {
	query := tx.PackageManagerConfig.Query().Where(packagemanagerconfig.ID(id))
	if s.store.Postgres() {
		query.ForUpdate()
	}
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("package manager config %d not found", id)
	}
	return row, err
}

// seal binds the credentials to their row, so that they cannot be unsealed for another.
func (s *PackageManagers) seal(id int64, sent credentials) ([]byte, error) {
	plain, err := proto.Marshal(sent.values)
	if err != nil {
		return nil, err
	}
	return s.keyring.Seal(plain, fmt.Appendf(nil, "package_manager_config/%d", id))
}

func nameTaken(err error, name string) error {
	if ent.IsConstraintError(err) {
		return apierr.AlreadyExists("a package manager config with the name %s exists in this deployment", apierr.Quote(name))
	}
	return err
}
