package services

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// writeOf is a command that writes no audit entry itself.
func writeOf(ctx context.Context, st *store.Store) error {
	return st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Deployment.Update().SetName("Changed").Exec(ctx)
	})
}

// A command that changes the store without audit.Change still leaves an entry. A command that does not use operate
// cannot change the store.
func TestCommandThatForgetsTheTrail(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	apitest.StartConfigured(t, cfg)
	opened, err := server.OpenStore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	name := func() string { return opened.Reader.Deployment.Query().OnlyX(tenant.System(t.Context())).Name }
	before := name()
	err = withStore(t.Context(), cfg, func(st *store.Store) error { return writeOf(t.Context(), st) })
	if !errors.Is(err, errReads) || name() != before {
		t.Errorf("a command that reads: %v, and the name is %q", err, name())
	}
	op := operation{method: "test.forgets", deployments: ofAll, request: map[string]any{"what": "x"}}
	err = operate(t.Context(), cfg, op, func(ctx context.Context, st *store.Store, _ *secret.Keyring) error { return writeOf(ctx, st) })
	if err != nil || name() != "Changed" {
		t.Fatalf("%v, and the name is %q", err, name())
	}
	e := opened.Reader.AuditEntry.Query().Where(auditentry.Method("test.forgets")).OnlyX(tenant.System(t.Context()))
	if e.ActorKind != "operator" || e.ActorName != operator() || e.Code != "OK" || e.Request != `{"what":"x"}` || e.Sequence == 0 {
		t.Errorf("got %+v", e)
	}
	err = operate(t.Context(), cfg, op, func(ctx context.Context, st *store.Store, _ *secret.Keyring) error {
		return errors.Join(writeOf(ctx, st), errors.New("failed"))
	})
	if err == nil || opened.Reader.AuditEntry.Query().Where(auditentry.Method("test.forgets")).CountX(tenant.System(t.Context())) != 2 {
		t.Errorf("a command that fails after a change: %v", err)
	}
	t.Setenv("SUDO_USER", "ada")
	if got := operator(); !strings.HasPrefix(got, "ada as ") {
		t.Errorf("behind sudo it is %s", got)
	}
	lost := cfg
	lost.KeyFile = filepath.Join(t.TempDir(), "lost.key")
	for what, err := range map[string]error{
		"mint": func() error { _, err := MintJWT(t.Context(), lost, "admin@localhost", time.Hour); return err }(),
		"run":  operate(t.Context(), lost, op, func(context.Context, *store.Store, *secret.Keyring) error { return errors.New("it was run") }),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s without the key: %v", what, err)
		}
	}
}

// openers are the functions of this package that may open a database, and why each may do so without operate.
var openers = map[string][]string{
	"openStore":    {"openExisting", "Migrate", "checkStore", "openMigrated"}, // the schema; the doctor, which rolls back its changes; the server
	"openExisting": {"withCurrent", "MigrationStatuses"},
	"withCurrent":  {"withStore", "operate", "BeginAudit"}, // BeginAudit has no trail yet that operate could write to; see audit.BeginTrails
}

// A new command that opens the store in another way would write without audit entries.
func TestCommandsOpenTheStoreByOperate(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch called := call.Fun.(type) {
				case *ast.Ident:
					if may, is := openers[called.Name]; is && !slices.Contains(may, fn.Name.Name) {
						t.Errorf("%s: %s calls %s: use operate, or withStore where nothing is changed", file, fn.Name.Name, called.Name)
					}
				case *ast.SelectorExpr:
					if of, ok := called.X.(*ast.Ident); ok && of.Name == "store" && called.Sel.Name == "Open" && fn.Name.Name != "openStore" {
						t.Errorf("%s: %s calls store.Open: use operate, or withStore where nothing is changed", file, fn.Name.Name)
					}
				}
				return true
			})
		}
	}
}
