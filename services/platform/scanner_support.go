package platform

import (
	"context"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
)

// noVersion is lower than all scanner versions, so that scanners do not suggest an update.
const noVersion = "0.0.0"

// ScannerSupport is the service group "scanner support".
type ScannerSupport struct {
	platformv1.UnimplementedScannerSupportServiceServer
}

// GetIdentity returns the owner of the credential (contract facts, section 6, GetIdentity).
func (ScannerSupport) GetIdentity(ctx context.Context, _ *platformv1.GetIdentityRequest) (*platformv1.GetIdentityResponse, error) {
	caller, _ := access.FromContext(ctx)
	response := &platformv1.GetIdentityResponse{Identity: caller.Name}
	if caller.Kind == access.KindToken {
		response.UserId = caller.UserID
		if grant, err := access.OnlyGrant(caller); err == nil {
			response.DeploymentId = grant.DeploymentID
		}
	}
	return response, nil
}

// GetDeepEngine always returns an error (scan protocol, section 2, row 13).
func (ScannerSupport) GetDeepEngine(context.Context, *platformv1.GetDeepEngineRequest) (*platformv1.GetDeepEngineResponse, error) {
	return nil, apierr.PermissionDenied("this server has no deep engine to download: run the scanner with --oss-only, as in `semgrep ci --oss-only`")
}

// CheckVersion returns no newer version (scan protocol, section 2, row 15).
func (ScannerSupport) CheckVersion(context.Context, *platformv1.CheckVersionRequest) (*platformv1.CheckVersionResponse, error) {
	return &platformv1.CheckVersionResponse{
		Latest: noVersion, Versions: &platformv1.ScannerVersions{Latest: noVersion, Minimum: noVersion},
	}, nil
}
