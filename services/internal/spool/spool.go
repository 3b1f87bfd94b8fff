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
	// checkEvery is how many bytes are written to all files between two checks of the disk.
	checkEvery = 1 << 20
	// quotaRetry is the retry delay that callers get when a quota is exhausted.
	quotaRetry = 10 * time.Second
)

// Limits are in bytes; 0 means no limit.
type Limits struct {
	// Node limits all files together, Deployment the files of one deployment.
	Node, Deployment int64
	// Disk has the reserve to keep free.
	Disk Disk
	// Unmoved returns how many stored bytes are still to be moved from the log of the database into its file. nil means
	// none.
	Unmoved func() int64
}

// Spool creates files in one directory. A nil Spool has no limits and uses the directory for temporary files. It is
// safe for concurrent use.
type Spool struct {
	dir     string
	limits  Limits
	refused func()

	mu          sync.Mutex
	total       int64
	deployments map[int64]int64
	received    int64 // bytes of total that callers sent: their imports will write to the database
	unchecked   int64 // bytes written since the last check of the disk
}

// Open creates the directory if it is missing, and removes files that a killed process has left there. It calls
// refused when a quota is exhausted.
func Open(dir string, limits Limits, refused func()) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the spool directory: %w", err)
	}
	if err := removeLeftovers(dir); err != nil {
		return nil, fmt.Errorf("clear the spool directory: %w", err)
	}
	return &Spool{dir: dir, limits: limits, refused: refused, deployments: map[int64]int64{}}, nil
}

// filePattern matches the name of a file between its creation and the removal of its name.
var filePattern = regexp.MustCompile(`^(report|envelope|converted|facts|results|import)-[0-9]+$`)

func removeLeftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !filePattern.MatchString(entry.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Used returns the number of bytes in all files.
func (s *Spool) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Of returns the Space of the deployment in ctx.
func (s *Spool) Of(ctx context.Context) Space {
	deploymentID, _ := tenant.FromContext(ctx)
	return Space{spool: s, deploymentID: deploymentID}
}

// Space creates files for one deployment. The zero value has no limits.
type Space struct {
	spool        *Spool
	deploymentID int64
}

// Receive creates a file for data from a caller. Writes fail when a quota is exhausted or the disk is full. kind is
// the prefix of its name; see filePattern.
func (s Space) Receive(kind string) (*File, error) { return s.create(kind, true) }

// Work creates a file for data that is computed from received files. Its bytes count, but a quota does not stop it:
// failing would waste the work, and finishing it frees space.
func (s Space) Work(kind string) (*File, error) { return s.create(kind, false) }

func (s Space) create(kind string, limited bool) (*File, error) {
	dir := ""
	if s.spool != nil {
		dir = s.spool.dir
		if err := s.spool.begin(s.deploymentID, limited); err != nil {
			return nil, err
		}
	}
	file, err := os.CreateTemp(dir, kind+"-*")
	if err != nil {
		return nil, err
	}
	// An unnamed file disappears when it is closed, even when the server is killed. Another server that starts may
	// already have removed the name.
	if err := os.Remove(file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, file.Close())
	}
	return &File{file: file, space: s, limited: limited}, nil
}

// Check returns an error when there is no room for another import.
func (s Space) Check() error {
	if s.spool == nil {
		return nil
	}
	s.spool.mu.Lock()
	defer s.spool.mu.Unlock()
	return s.spool.checkDisk(true)
}

// Continue returns an error when an import has used the room that was left for it, so that it is wrong to write more.
func (s Space) Continue() error {
	if s.spool == nil || s.spool.limits.Disk.Growth == 0 {
		return nil
	}
	return s.spool.limits.Disk.Check(0)
}

// begin returns an error when there is no space for another file.
func (s *Spool) begin(deploymentID int64, limited bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkDisk(limited); err != nil || !limited {
		return err
	}
	return s.checkQuota(deploymentID, 0)
}

// checkDisk checks the reserve. Received files also leave room for what the imports of all of them will write. Work on
// these files uses that room.
func (s *Spool) checkDisk(received bool) error {
	expected := int64(0)
	if received {
		expected = s.received * s.limits.Disk.Growth
		if s.limits.Unmoved != nil {
			expected += s.limits.Unmoved()
		}
	}
	return s.limits.Disk.Check(expected)
}

func (s *Spool) checkQuota(deploymentID, bytes int64) error {
	err := s.overQuota(deploymentID, bytes)
	if err != nil {
		s.refused()
	}
	return err
}

// take counts bytes that are about to be written, or returns an error when there is no space.
func (s *Spool) take(deploymentID, bytes int64, limited bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limited {
		if err := s.checkQuota(deploymentID, bytes); err != nil {
			return err
		}
	}
	if s.unchecked += bytes; s.unchecked >= checkEvery {
		if err := s.checkDisk(limited); err != nil {
			return err // unchecked is kept, so the next write checks again
		}
		s.unchecked = 0
	}
	if limited {
		s.received += bytes
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
	text := fmt.Sprintf("the uploads of %s that are in progress may take %s of disk together, decompressed (%s), and there is no room for more: try again in %.0f s",
		of, size(limit), setting, quotaRetry.Seconds())
	return apierr.New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED, text,
		&errdetails.RetryInfo{RetryDelay: durationpb.New(quotaRetry)})
}

func (s *Spool) release(deploymentID, bytes int64, limited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limited {
		s.received -= bytes
	}
	s.total -= bytes
	if s.deployments[deploymentID] -= bytes; s.deployments[deploymentID] == 0 {
		delete(s.deployments, deploymentID)
	}
}
