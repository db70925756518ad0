-- Copyright (c) 2026, the pg_access.reconcile authors
-- GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- Who may do what in chinook.

CREATE ROLE "Sales";
CREATE ROLE "Support";
CREATE ROLE "Catalog Editors";
CREATE ROLE "web-shop" LOGIN;
CREATE ROLE "Jane.Peacock@chinookcorp.com" LOGIN VALID UNTIL 'infinity';
CREATE ROLE "BI" LOGIN NOINHERIT;
GRANT "Sales", "Catalog Editors" TO "web-shop";
GRANT "Support" TO "Jane.Peacock@chinookcorp.com" WITH ADMIN OPTION;
GRANT "Sales" TO "BI";

GRANT USAGE ON SCHEMA public TO "Sales", "Support", "Catalog Editors";
GRANT SELECT ON "Artist", "Album", "Genre", "MediaType", "Track", "Playlist", "PlaylistTrack" TO "Sales";
GRANT INSERT, UPDATE, DELETE ON "Artist", "Album", "Genre", "MediaType", "Track" TO "Catalog Editors";
GRANT SELECT, INSERT ON "Invoice", "InvoiceLine" TO "Sales";
GRANT UPDATE ("Total") ON "Invoice" TO "Sales";
GRANT USAGE ON SEQUENCE "InvoiceLine_InvoiceLineId_seq" TO "Sales";
GRANT SELECT ("CustomerId", "FirstName", "LastName") ON "Customer" TO "Sales";
GRANT SELECT ON "Customer", "CustomersOf" TO "Support" WITH GRANT OPTION;
GRANT UPDATE ("Phone", "Email") ON "Customer" TO "Support" WITH GRANT OPTION;
GRANT SELECT ("EmployeeId", "FirstName", "Title") ON "Employee" TO PUBLIC;
SET ROLE "Support";
GRANT SELECT ON "Customer" TO "BI";
GRANT UPDATE ("Phone") ON "Customer" TO "Jane.Peacock@chinookcorp.com";
RESET ROLE;
REVOKE EXECUTE ON FUNCTION "TotalOf"("EMail", "Money"[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION "TotalOf"("EMail", "Money"[]) TO "BI";
REVOKE USAGE ON DOMAIN "EMail" FROM PUBLIC;
GRANT USAGE ON DOMAIN "EMail" TO "Support";
ALTER DEFAULT PRIVILEGES FOR ROLE "ChinookOwner" GRANT SELECT ON TABLES TO "BI";
ALTER DEFAULT PRIVILEGES FOR ROLE "ChinookOwner" GRANT USAGE ON SCHEMAS TO "BI";
