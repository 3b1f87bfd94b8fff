package identity

import (
	"context"

	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Background: []jobs.Work{TokenRequestsBackground(d.Store)},
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[identityv1.TokensServiceServer](identityv1.RegisterTokensServiceServer, NewTokens(d.Store, d.Tokens),
					identityv1.RegisterTokensServiceHandlerClient, identityv1.NewTokensServiceClient),
				server.Group[identityv1.MembersServiceServer](identityv1.RegisterMembersServiceServer, NewMembers(d.Store, d.Tokens),
					identityv1.RegisterMembersServiceHandlerClient, identityv1.NewMembersServiceClient),
				server.Group[identityv1.TokenRequestsServiceServer](identityv1.RegisterTokenRequestsServiceServer, NewTokenRequests(d.Store, d.Tokens, d.Keyring),
					identityv1.RegisterTokenRequestsServiceHandlerClient, identityv1.NewTokenRequestsServiceClient),
				server.Group[identityv1.TeamsServiceServer](identityv1.RegisterTeamsServiceServer, NewTeams(d.Store),
					identityv1.RegisterTeamsServiceHandlerClient, identityv1.NewTeamsServiceClient),
				server.Group[identityv1.SessionsServiceServer](identityv1.RegisterSessionsServiceServer, NewSessions(d.Store, d.Sessions),
					identityv1.RegisterSessionsServiceHandlerClient, identityv1.NewSessionsServiceClient),
				server.Group[identityv1.UsersServiceServer](identityv1.RegisterUsersServiceServer, NewUsers(d.Store),
					identityv1.RegisterUsersServiceHandlerClient, identityv1.NewUsersServiceClient),
			}, nil
		},
	}
}
