// Package tasktoken makes and reads the tokens of background tasks: the taskTokenJwt that operations with the status
// 202 answer, and that clients give to TasksService.GetTaskResult. They are signed, expire, and name a deployment. They
// are no credentials: key and algorithm differ from users' tokens, and reading a result requires a credential, of the
// deployment if there is one.
package tasktoken

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// Life is how long a token is valid.
	Life = 24 * time.Hour
	// MaxJobs is the maximum number of jobs of a task, because the tokens are part of paths.
	MaxJobs = 50

	keyName  = "task_token_key"
	audience = "palisade-tasks"
)

// PatternFix is the kind of the only task outside a deployment: any caller with its token gets its result.
const PatternFix = "pattern_fix"

// PatternResult is what the job of a pattern fix records: a pattern, or why there is none.
type PatternResult struct {
	Pattern string `json:"pattern,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Task is a background task: one job, or a group of jobs.
type Task struct {
	// DeploymentID is 0 only for PatternFix.
	DeploymentID int64
	// Kind is the kind of its jobs.
	Kind string
	// ObjectID is the object that it works on.
	ObjectID int64
	// JobIDs are the ids of its jobs, from jobs.EnqueueTask.
	JobIDs []int64
}

// claims are the contents of a token. The subject is the kind.
type claims struct {
	jwt.RegisteredClaims
	DeploymentID string  `json:"deploymentId"`
	ObjectID     string  `json:"objectId"`
	JobIDs       []int64 `json:"jobIds"`
}

// Tokens signs and verifies tokens with a key that all nodes share.
type Tokens struct {
	store   *store.Store
	keyring *secret.Keyring
	issuer  string
	now     func() time.Time
}

// New returns tokens that name the server's public URL as their issuer. The key is in the store.
func New(st *store.Store, keyring *secret.Keyring, issuer string) *Tokens {
	return &Tokens{store: st, keyring: keyring, issuer: issuer, now: time.Now}
}

// Mint returns a token for a task. Call it after the transaction that enqueued the jobs.
func (t *Tokens) Mint(ctx context.Context, task Task) (string, error) {
	if len(task.JobIDs) == 0 || len(task.JobIDs) > MaxJobs {
		return "", fmt.Errorf("a token for %d jobs: want 1 to %d", len(task.JobIDs), MaxJobs)
	}
	key, err := t.signingKey(ctx)
	if err != nil {
		return "", err
	}
	now := t.now().Truncate(time.Second)
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		DeploymentID: strconv.FormatInt(task.DeploymentID, 10), ObjectID: strconv.FormatInt(task.ObjectID, 10), JobIDs: task.JobIDs,
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: t.issuer, Audience: jwt.ClaimStrings{audience}, Subject: task.Kind, ID: rand.Text(),
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(Life)),
		},
	}).SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign the task token: %w", err)
	}
	return signed, nil
}

// ErrInvalid is the error of every token that is not valid: malformed, forged or expired.
var ErrInvalid = errors.New("the task token is not valid")

// Read returns the task of a token. The caller has to check that it may see the task's deployment. The error is
// ErrInvalid, unless the store fails.
func (t *Tokens) Read(ctx context.Context, token string) (*Task, error) {
	key, err := t.signingKey(ctx)
	if err != nil {
		return nil, err
	}
	var c claims
	_, err = jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithAudience(audience), jwt.WithExpirationRequired(), jwt.WithTimeFunc(t.now))
	if err != nil {
		return nil, ErrInvalid
	}
	task := &Task{Kind: c.Subject, JobIDs: c.JobIDs}
	var errs [2]error
	task.DeploymentID, errs[0] = strconv.ParseInt(c.DeploymentID, 10, 64)
	task.ObjectID, errs[1] = strconv.ParseInt(c.ObjectID, 10, 64)
	if errors.Join(errs[:]...) != nil || len(task.JobIDs) == 0 { // an older version signed it, without jobs
		return nil, ErrInvalid
	}
	return task, nil
}

// Prepare makes the key. The first token would do it, too, and take longer.
func (t *Tokens) Prepare(ctx context.Context) error {
	_, err := t.signingKey(ctx)
	return err
}

func (t *Tokens) signingKey(ctx context.Context) ([]byte, error) {
	return t.keyring.StoredKey(ctx, t.store, keyName)
}
