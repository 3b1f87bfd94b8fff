// Package platform serves the service groups without a domain of their own.
package platform

import (
	"context"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
)

// Miscellaneous is the service group "miscellaneous".
type Miscellaneous struct {
	platformv1.UnimplementedMiscellaneousServiceServer
}

// Ping reports that the server is up.
func (Miscellaneous) Ping(context.Context, *platformv1.PingRequest) (*platformv1.PingResponse, error) {
	return &platformv1.PingResponse{}, nil
}
