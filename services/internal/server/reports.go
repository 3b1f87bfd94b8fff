package server

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fullstorydev/grpchan"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// sealedCheck is a setting that differs between installations: a sealed constant that is written when the key is first
// used.
const sealedCheck = "key_check"

// reportsCheckInterval is how long a successful check of the replica is valid. Tests shorten it.
var reportsCheckInterval = 15 * time.Second

// reportsTimeout limits how long a start or a report waits for the replica.
const reportsTimeout = 5 * time.Second

// Reports is the database of reports: the configured replica, else the main database. When the replica is down, only
// reports fail.
type Reports struct {
	store, main *store.Store
	log         *slog.Logger
	checked     atomic.Int64 // when the replica was last verified, in microseconds; 0: not yet, or the verification failed since
	warned      atomic.Bool  // the unfit replica has been logged
	checking    singleflight.Group
}

// Store is the database that reports are read from.
func (r *Reports) Store() *store.Store { return r.store }

// CheckReplica checks that a database is a replica of main that is fit for reports.
func CheckReplica(ctx context.Context, replica, main *store.Store) error {
	return (&Reports{store: replica, main: main}).check(ctx)
}

// openReports opens the database of reports. A replica that is down is checked later. A wrong replica is an error.
func (s *Server) openReports(ctx context.Context, main *store.Store, metrics *telemetry.Metrics) (*Reports, error) {
	if s.config.ReportsDatabase == "" {
		return &Reports{store: main, main: main}, nil
	}
	replica, err := main.OpenReplica(ctx, store.Options{Database: s.config.ReportsDatabase, MaxOpen: s.config.DBMaxOpen})
	if err != nil {
		return nil, fmt.Errorf("reports-database: %w", err)
	}
	s.onClose("reports database", func(context.Context) error { return replica.Close() })
	r := &Reports{store: replica, main: main, log: s.log}
	err = r.check(ctx)
	switch {
	case err == nil:
		r.checked.Store(store.Now())
	case errors.Is(err, store.ErrNoReplica): // down or not yet a replica: everything else can still be served
		r.unfit(err)
	case Unreachable(err):
		r.warn(err)
	default:
		return nil, fmt.Errorf("reports-database: %w", err)
	}
	reader, _ := replica.DB()
	metrics.WatchPools(map[string]*sql.DB{"reports": reader})
	return r, nil
}

// RequireReplica wraps a service group so that its calls fail while the configured replica is down.
func (r *Reports) RequireReplica(group Service) Service {
	if r.store == r.main {
		return group
	}
	register := group.RegisterGRPC
	group.RegisterGRPC = func(s grpc.ServiceRegistrar) { register(grpchan.WithUnaryInterceptors(s, r.intercept)) }
	return group
}

func (r *Reports) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := r.ensureReplica(ctx); err != nil {
		return nil, err
	}
	answer, err := handler(ctx, request)
	if err == nil || !Unreachable(err) && status.Code(apierr.Map(err)) != codes.Internal {
		return answer, err
	}
	// The driver's error after a lost connection may be anything, so check the replica again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportsTimeout)
	defer cancel()
	if r.store.Ping(ctx) == nil {
		return answer, err
	}
	if r.checked.Swap(0) != 0 {
		r.warn(err)
	}
	return nil, reportsDown(err)
}

func (r *Reports) warn(err error) {
	r.log.Warn("the reports database cannot be reached: reports are refused until it answers, everything else continues",
		"location", r.store.Location(), "error", err)
}

func (r *Reports) unfit(err error) {
	if !r.warned.Swap(true) {
		r.log.Error("the reports database cannot be used: reports are refused, everything else continues", "error", err)
	}
}

// ensureReplica checks the replica unless the last check is recent, because it may be promoted at any time. Concurrent
// calls share one check.
func (r *Reports) ensureReplica(ctx context.Context) error {
	if at := r.checked.Load(); at != 0 && store.Now()-at < reportsCheckInterval.Microseconds() {
		return nil
	}
	_, err, _ := r.checking.Do("", func() (any, error) { return nil, r.check(context.WithoutCancel(ctx)) })
	switch {
	case err == nil:
		if r.warned.Store(false); r.checked.Swap(store.Now()) == 0 {
			r.log.Info("the reports database answers: reports are read from it", "location", r.store.Location())
		}
		return nil
	case Unreachable(err):
		if r.checked.Swap(0) != 0 {
			r.warn(err)
		}
		return reportsDown(err)
	}
	r.checked.Store(0)
	r.unfit(err)
	if errors.Is(err, store.ErrNoReplica) {
		return apierr.Unavailable(err, "reports cannot be read: their database (reports-database) is no longer a replica of the database, "+
			"and the administrator of the server must configure one")
	}
	return apierr.Unavailable(err, "reports cannot be read: their database (reports-database) cannot be used, and the log of the server says why")
}

// check verifies that the database is a replica of the main database.
func (r *Reports) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reportsTimeout)
	defer cancel()
	if err := r.store.CheckReplica(ctx); err != nil {
		return err
	}
	// Ids are the same in every installation. Reports from the database of another installation would show one tenant's
	// numbers to another.
	here, err := readSealedCheck(ctx, r.main)
	if err != nil {
		return err
	}
	there, err := readSealedCheck(ctx, r.store)
	switch {
	case err != nil:
		return err
	case len(there) == 0:
		return store.ErrReplicaBehind
	case !bytes.Equal(here, there):
		return errors.New(r.store.Location() + " is the database of another installation, not a replica of " +
			r.main.Location() + ": name a replica of it, or remove the key to read reports from database itself")
	}
	return nil
}

// Unreachable reports a database that is down and may recover, as opposed to one that refuses access or is the wrong
// one.
func Unreachable(err error) bool {
	// The user, the password or the name of the database is wrong.
	if state := apierr.SQLState(err); strings.HasPrefix(state, "28") || strings.HasPrefix(state, "3D") || state == apierr.StateNoPrivilege {
		return false
	}
	code := status.Code(apierr.Map(err))
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}

func reportsDown(cause error) error {
	return apierr.Unavailable(cause, "reports cannot be read now: their database (reports-database) does not answer; try again")
}

func readSealedCheck(ctx context.Context, st *store.Store) ([]byte, error) {
	row, err := st.Reader.Setting.Query().Where(setting.Name(sealedCheck)).Only(tenant.System(ctx))
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the id of the installation: %w", err)
	}
	return row.Value, nil
}
