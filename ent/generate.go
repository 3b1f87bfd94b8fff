package ent

//go:generate go run -mod=mod entgo.io/ent/cmd/ent generate --feature privacy,entql,sql/upsert,sql/lock,sql/modifier,sql/execquery,sql/versioned-migration --template ./template ./schema
