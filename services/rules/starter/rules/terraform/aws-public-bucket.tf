resource "aws_s3_bucket_acl" "reports" {
  bucket = aws_s3_bucket.reports.id
  # ruleid: palisade.terraform.aws-public-bucket
  acl = "public-read"
}

resource "aws_s3_bucket_acl" "private" {
  bucket = aws_s3_bucket.private.id
  # ok: palisade.terraform.aws-public-bucket
  acl = "private"
}

resource "aws_elasticache_user" "reader" {
  # ok: palisade.terraform.aws-public-bucket
  acl = "public-read"
  # ok: palisade.terraform.aws-public-bucket
  force_destroy = false
}
