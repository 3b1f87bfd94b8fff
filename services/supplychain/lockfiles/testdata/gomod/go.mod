module example.com/shop

go 1.22rc1

toolchain go1.22.4

require (
	github.com/google/uuid v1.6.0
	github.com/gin-gonic/gin v1.9.1
	github.com/acme/local v0.0.0
)

require (
	github.com/docker/docker v24.0.7+incompatible // indirect
	github.com/gogo/protobuf v1.3.1 // indirect
	github.com/hashicorp/vault/api v1.9.0
)

replace (
	github.com/acme/local => ../local
	github.com/gogo/protobuf v1.3.1 => github.com/gogo/protobuf v1.3.2
	github.com/gin-gonic/gin => example.org/gin v1.9.2
)

exclude github.com/google/uuid v1.5.0

retract v1.0.0
