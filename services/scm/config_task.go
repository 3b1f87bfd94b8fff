package scm

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// taskKeyName names the key of task tokens in the store. They are no credentials: nothing but the name of a task is in
	// them, and the key and algorithm are not those of users' tokens.
	taskKeyName = "task_token_key"
	// taskAudience is the aud claim of task tokens.
	taskAudience = "palisade-tasks"
	// taskTokenLife is how long a token names its task.
	taskTokenLife = 24 * time.Hour
)

// taskClaims name a background task: its kind is the subject.
type taskClaims struct {
	jwt.RegisteredClaims
	// DeploymentID owns the task, ObjectID is what it works on.
	DeploymentID string `json:"deploymentId"`
	ObjectID     string `json:"objectId"`
}

// taskToken names a synchronization for those who want to ask for it later (contract: taskTokenJwt).
func (s *Configurations) taskToken(ctx context.Context, args syncArgs) (string, error) {
	key, err := s.seals.Keyring.StoredKey(ctx, s.store, taskKeyName)
	if err != nil {
		return "", err
	}
	now := time.Now().Truncate(time.Second)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, taskClaims{
		DeploymentID: strconv.FormatInt(args.DeploymentID, 10), ObjectID: strconv.FormatInt(args.ConfigID, 10),
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: s.publicURL, Audience: jwt.ClaimStrings{taskAudience}, Subject: args.Kind(), ID: rand.Text(),
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(taskTokenLife)),
		},
	})
	signed, err := token.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign the task token: %w", err)
	}
	return signed, nil
}
