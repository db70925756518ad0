-- Copyright (c) 2026, the pg_access.reconcile authors
-- GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- A music shop like chinook: one schema, every name in mixed case, so every name needs its quotes.

CREATE ROLE "ChinookOwner";
CREATE ROLE builder SUPERUSER;
SET ROLE builder;

CREATE TABLE "Artist" ("ArtistId" int PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "Album" (
    "AlbumId" int PRIMARY KEY, "Title" varchar(160) NOT NULL, "ArtistId" int NOT NULL REFERENCES "Artist"
);
CREATE TABLE "Genre" ("GenreId" int PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "MediaType" ("MediaTypeId" int PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "Track" (
    "TrackId" int PRIMARY KEY, "Name" varchar(200) NOT NULL, "AlbumId" int REFERENCES "Album", "Composer" varchar(220),
    "MediaTypeId" int REFERENCES "MediaType", "GenreId" int REFERENCES "Genre", "UnitPrice" numeric(10, 2) NOT NULL
);
CREATE TABLE "Employee" (
    "EmployeeId" int PRIMARY KEY, "LastName" text NOT NULL, "FirstName" text NOT NULL, "Title" text,
    "ReportsTo" int REFERENCES "Employee", "BirthDate" date, "Email" text
);
CREATE TABLE "Customer" (
    "CustomerId" int PRIMARY KEY, "FirstName" text NOT NULL, "LastName" text NOT NULL, "Email" text NOT NULL,
    "Phone" text, "SupportRepId" int REFERENCES "Employee"
);
CREATE TABLE "Invoice" (
    "InvoiceId" int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "CustomerId" int REFERENCES "Customer",
    "InvoiceDate" timestamp NOT NULL, "Total" numeric(10, 2) NOT NULL
);
CREATE TABLE "InvoiceLine" (
    "InvoiceLineId" serial PRIMARY KEY, "InvoiceId" int REFERENCES "Invoice", "TrackId" int REFERENCES "Track",
    "Quantity" int NOT NULL
);
CREATE TABLE "Playlist" ("PlaylistId" int PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "PlaylistTrack" ("PlaylistId" int REFERENCES "Playlist", "TrackId" int REFERENCES "Track");
CREATE TYPE "Money" AS ("Amount" numeric, "Currency" text);
CREATE DOMAIN "EMail" AS text CHECK (VALUE LIKE '%@%');
CREATE FUNCTION "TotalOf"("Invoice") RETURNS "Money" LANGUAGE sql AS
    $$ SELECT $1."Total", 'EUR' $$;
CREATE FUNCTION "TotalOf"("EMail", "Money"[]) RETURNS numeric LANGUAGE sql AS $$ SELECT 0::numeric $$;
CREATE VIEW "CustomersOf" AS SELECT "SupportRepId", count(*) AS "Customers" FROM "Customer" GROUP BY 1;

RESET ROLE;
REASSIGN OWNED BY builder TO "ChinookOwner";
DROP ROLE builder;
