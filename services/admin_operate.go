package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// operation is what a command is about to do to the store, for the audit trail.
type operation struct {
	// method is what entries call it, such as token.create.
	method string
	// request is what the command was told; no secrets.
	request map[string]any
	// homes are the deployments that get an entry where the command names no deployment for what it changes.
	homes func(ctx context.Context, st *store.Store) ([]int64, error)
}

// operate runs a command that changes the store beside the server. It is the only way to do so: the key must be there
// and fit, before anything is written, and every transaction of fn gets an entry of the audit trail, whether fn thinks
// of it (audit.Change) or not. A command that changed nothing, but succeeded, has one, too.
func operate(ctx context.Context, cfg config.Config, op operation, fn func(ctx context.Context, st *store.Store, keyring *secret.Keyring) error) error {
	return apierr.Plain(withCurrent(ctx, cfg, func(st *store.Store) error {
		homes, err := op.homes(ctx, st)
		if err != nil {
			return err
		}
		if len(homes) == 0 {
			return fmt.Errorf("the database %s has %w: start the server once with these settings (palisade serve)", st.Location(), errNoHome)
		}
		keyring, err := secret.OpenExisting(ctx, st, cfg.KeyPath())
		if err != nil {
			return err
		}
		trail, err := audit.Open(ctx, st, keyring, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		call, err := op.call()
		if err != nil {
			return err
		}
		call.Home = homes[0]
		ctx, recorder := trail.Record(tenant.System(ctx), call)
		st.Guard(func(ctx context.Context) error { recorder.Ensure(ctx, homes); return nil })
		if err := fn(ctx, st, keyring); err != nil || recorder.Written() > 0 {
			return err
		}
		return st.Write(ctx, func(context.Context, *ent.Tx) error { return nil })
	}))
}

// errNoHome is a database without a trail that an entry could go to.
var errNoHome = errors.New("no deployment")

// call describes the command for its entries.
func (op operation) call() (audit.Call, error) {
	request, err := structpb.NewStruct(op.request)
	host, _ := os.Hostname() // without a name it is left out
	return audit.Call{Actor: audit.Actor{Kind: audit.KindOperator, Name: operator()}, Method: op.method, Remote: host, Request: request}, err
}

// operator is the account of the machine that runs the command, as far as it says.
func operator() string {
	name := "operator"
	if account, err := user.Current(); err == nil && account.Username != "" {
		name = account.Username
	}
	if behind := os.Getenv("SUDO_USER"); behind != "" && behind != name {
		return behind + " as " + name
	}
	return name
}

// errReads is a fault of a command that was to read only.
var errReads = errors.New("this command changes the database, and leaves no entry in the audit trail: it has to be run by operate")

// withStore runs fn, which only reads, on the open database, whose schema must be up to date.
func withStore(ctx context.Context, cfg config.Config, fn func(*store.Store) error) error {
	return withCurrent(ctx, cfg, func(st *store.Store) error {
		st.Guard(func(context.Context) error { return errReads })
		return fn(st)
	})
}

// ofSlug are the homes of a command for one deployment.
func ofSlug(slug string) func(context.Context, *store.Store) ([]int64, error) {
	return func(ctx context.Context, st *store.Store) ([]int64, error) {
		row, err := access.NewTokens(st).DeploymentBySlug(ctx, slug)
		if err != nil {
			return nil, err
		}
		return []int64{row.ID}, nil
	}
}

// ofAll are the homes of a command for the whole server.
func ofAll(ctx context.Context, st *store.Store) ([]int64, error) {
	return st.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).IDs(tenant.System(ctx))
}

// ofUser are the homes of a command for one user: the deployments that the user is a member of, or else the first one.
func ofUser(email string) func(context.Context, *store.Store) ([]int64, error) {
	return func(ctx context.Context, st *store.Store) ([]int64, error) {
		if ids, err := access.DeploymentsOf(ctx, st, email); err != nil || len(ids) > 0 {
			return ids, err
		}
		ids, err := ofAll(ctx, st)
		return ids[:min(1, len(ids))], err
	}
}
