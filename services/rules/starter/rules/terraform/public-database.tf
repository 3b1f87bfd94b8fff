resource "aws_db_instance" "shop" {
  engine = "postgres"
  # ruleid: palisade.terraform.public-database
  publicly_accessible = true
}

resource "aws_db_instance" "private" {
  engine = "postgres"
  # ok: palisade.terraform.public-database
  publicly_accessible = false
}

resource "google_sql_database_instance" "shop" {
  settings {
    ip_configuration {
      authorized_networks {
        # ruleid: palisade.terraform.public-database
        value = "0.0.0.0/0"
      }
      authorized_networks {
        # ok: palisade.terraform.public-database
        value = "192.0.2.0/24"
        # ok: palisade.terraform.public-database
        iam_database_authentication_enabled = true
      }
    }
  }
}
