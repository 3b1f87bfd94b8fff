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
	// taskKeyName is the name of the signing key for task tokens. The tokens are not credentials: they contain only the
	// name of a task, and key and algorithm differ from users' tokens.
	taskKeyName = "task_token_key"
	// taskAudience is the aud claim of task tokens.
	taskAudience = "palisade-tasks"
	// taskTokenLife is how long a token is valid.
	taskTokenLife = 24 * time.Hour
)

// taskClaims identifies a background task. The subject is its kind.
type taskClaims struct {
	jwt.RegisteredClaims
	// DeploymentID is the task's deployment, ObjectID the object that it works on.
	DeploymentID string `json:"deploymentId"`
	ObjectID     string `json:"objectId"`
}

// taskToken returns a token that identifies a synchronization in later requests (contract: taskTokenJwt).
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
