package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

const (
	// checkEvery is after how many written bytes, of all files together, the disk is looked at again.
	checkEvery = 4 << 20
	// quotaRetry is what a caller is told when a quota is used up.
	quotaRetry = 10 * time.Second
)

// Limits are in bytes; 0 means no limit.
type Limits struct {
	// Node is for all files together, Deployment for those of one deployment.
	Node, Deployment int64
	// Disk must keep its reserve.
	Disk Disk
}

// Spool makes files in one directory. Nil is one without limits in the directory for temporary files. It is safe for
// concurrent use.
type Spool struct {
	dir     string
	limits  Limits
	refused func()

	mu          sync.Mutex
	total       int64
	deployments map[int64]int64
	unchecked   int64 // written since the disk was looked at
}

// Open makes the directory if it is missing, and removes what a process left there that was killed at a bad moment.
// refused is called when a quota is used up.
func Open(dir string, limits Limits, refused func()) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the spool directory: %w", err)
	}
	if err := removeLeftovers(dir); err != nil {
		return nil, fmt.Errorf("clear the spool directory: %w", err)
	}
	return &Spool{dir: dir, limits: limits, refused: refused, deployments: map[int64]int64{}}, nil
}

// leftover is the name of a file before it loses it.
var leftover = regexp.MustCompile(`^(report|envelope|results|import)-[0-9]+$`)

func removeLeftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !leftover.MatchString(entry.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Used is how many bytes all files have now.
func (s *Spool) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Of are the files of the deployment that ctx acts in.
func (s *Spool) Of(ctx context.Context) Space {
	deploymentID, _ := tenant.FromContext(ctx)
	return Space{spool: s, deploymentID: deploymentID}
}

// Space makes files of one deployment. The zero one has no limits.
type Space struct {
	spool        *Spool
	deploymentID int64
}

// Receive makes a file for what a caller sends. Writing to it fails when a quota is used up or the disk has no room.
// kind begins its name; see leftover.
func (s Space) Receive(kind string) (*File, error) { return s.create(kind, true) }

// Work makes a file for what is computed of things that were received. Its bytes count, but a quota that is used up
// does not stop it: it would be wasted work, and it is what makes room again.
func (s Space) Work(kind string) (*File, error) { return s.create(kind, false) }

func (s Space) create(kind string, limited bool) (*File, error) {
	dir := ""
	if s.spool != nil {
		dir = s.spool.dir
		if err := s.spool.limits.Disk.Check(); err != nil {
			return nil, err
		}
		if err := s.spool.take(s.deploymentID, 0, limited); err != nil {
			return nil, err
		}
	}
	file, err := os.CreateTemp(dir, kind+"-*")
	if err != nil {
		return nil, err
	}
	// Without a name it is gone when it is closed, even if the server is killed. Another server that starts may have
	// removed it.
	if err := os.Remove(file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, file.Close())
	}
	return &File{file: file, space: s, limited: limited}, nil
}

// take counts bytes that are about to be written, unless there is no room for them.
func (s *Spool) take(deploymentID, bytes int64, limited bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limited {
		if err := s.overQuota(deploymentID, bytes); err != nil {
			s.refused()
			return err
		}
	}
	if s.unchecked += bytes; s.unchecked >= checkEvery {
		if err := s.limits.Disk.Check(); err != nil {
			return err // unchecked stays: the next one looks again
		}
		s.unchecked = 0
	}
	s.total += bytes
	if s.deployments[deploymentID] += bytes; s.deployments[deploymentID] == 0 {
		delete(s.deployments, deploymentID)
	}
	return nil
}

func (s *Spool) overQuota(deploymentID, bytes int64) error {
	of, setting, limit := "", "", int64(0)
	switch {
	case s.limits.Deployment > 0 && s.deployments[deploymentID]+max(bytes, 1) > s.limits.Deployment:
		of, setting, limit = "this deployment", "spool-quota-deployment", s.limits.Deployment
	case s.limits.Node > 0 && s.total+max(bytes, 1) > s.limits.Node:
		of, setting, limit = "this node", "spool-quota", s.limits.Node
	default:
		return nil
	}
	text := fmt.Sprintf("the uploads of %s that are on their way may take %s of disk together, decompressed (%s), and there is no room for more: try again in %.0f s",
		of, size(limit), setting, quotaRetry.Seconds())
	return apierr.New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED, text,
		&errdetails.RetryInfo{RetryDelay: durationpb.New(quotaRetry)})
}

func (s *Spool) give(deploymentID, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total -= bytes
	if s.deployments[deploymentID] -= bytes; s.deployments[deploymentID] == 0 {
		delete(s.deployments, deploymentID)
	}
}
