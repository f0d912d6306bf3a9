CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE datasets (
	id INTEGER NOT NULL,
	urn TEXT NOT NULL,
	name TEXT NOT NULL,
	name_key TEXT NOT NULL,
	platform TEXT NOT NULL,
	format TEXT,
	contract_hash TEXT NOT NULL,
	version TEXT,
	quality_score DOUBLE,
	document TEXT NOT NULL,
	updated_at TEXT NOT NULL, origin TEXT, found_hash TEXT, checksum BIGINT, contributor TEXT, observed TEXT,
	PRIMARY KEY (id),
	UNIQUE (urn)
);
CREATE INDEX datasets_platform ON datasets (platform);
CREATE TABLE dataset_labels (
	dataset_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (dataset_id, kind, value),
	FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE CASCADE
);
CREATE INDEX dataset_labels_value ON dataset_labels (kind, value);
CREATE TABLE lineage_edges (
	edge_key TEXT NOT NULL,
	upstream_urn TEXT NOT NULL,
	downstream_urn TEXT NOT NULL,
	document TEXT NOT NULL,
	updated_at TEXT NOT NULL, checksum BIGINT,
	PRIMARY KEY (edge_key)
);
CREATE INDEX lineage_edges_upstream ON lineage_edges (upstream_urn, edge_key);
CREATE INDEX lineage_edges_downstream ON lineage_edges (downstream_urn);
CREATE TABLE entities (
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	document TEXT NOT NULL,
	updated_at TEXT NOT NULL, checksum BIGINT,
	PRIMARY KEY (kind, name)
);
CREATE TABLE identity_map (
	urn TEXT NOT NULL,
	catalog TEXT NOT NULL,
	document TEXT NOT NULL, checksum BIGINT,
	PRIMARY KEY (urn, catalog)
);
CREATE VIRTUAL TABLE search_index USING fts5(
    name, fields, labels, prose,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'",
    prefix = '2 3'
);
CREATE TABLE versions (
	urn TEXT NOT NULL,
	sequence BIGINT NOT NULL,
	version TEXT NOT NULL,
	cloud_version TEXT,
	timestamp TEXT NOT NULL,
	document TEXT NOT NULL,
	dataset TEXT NOT NULL, contract_hash TEXT, state BLOB, checksum BIGINT, state_checksum BIGINT,
	PRIMARY KEY (urn, sequence),
	CONSTRAINT versions_version UNIQUE (urn, version)
);
CREATE TABLE changes (
	urn TEXT NOT NULL,
	sequence BIGINT NOT NULL,
	position INTEGER NOT NULL,
	rule TEXT NOT NULL,
	level TEXT NOT NULL,
	document TEXT NOT NULL, checksum BIGINT,
	PRIMARY KEY (urn, sequence, position),
	FOREIGN KEY(urn, sequence) REFERENCES versions (urn, sequence) ON DELETE CASCADE
);
CREATE INDEX changes_level ON changes (level, urn);
CREATE TABLE runs (
	id TEXT NOT NULL,
	operation TEXT NOT NULL,
	started_at TEXT NOT NULL,
	finished_at TEXT,
	document TEXT NOT NULL, checksum BIGINT, state TEXT, fence BIGINT,
	PRIMARY KEY (id)
);
CREATE INDEX runs_started_at ON runs (started_at);
CREATE INDEX datasets_origin ON datasets (origin);
CREATE TABLE alerts (
	id TEXT NOT NULL,
	channel TEXT NOT NULL,
	urn TEXT NOT NULL,
	version TEXT NOT NULL,
	position INTEGER NOT NULL,
	level TEXT NOT NULL,
	state TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	next_attempt_at TEXT NOT NULL,
	claimed_until TEXT,
	sent_at TEXT,
	error TEXT,
	document TEXT NOT NULL, checksum BIGINT,
	PRIMARY KEY (id)
);
CREATE INDEX alerts_due ON alerts (state, channel, next_attempt_at);
CREATE INDEX alerts_version ON alerts (urn, version);
CREATE TABLE sync_states (
	target TEXT NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	hash TEXT NOT NULL,
	kept TEXT,
	updated_at TEXT NOT NULL, checksum BIGINT,
	PRIMARY KEY (target, kind, name)
);
CREATE TABLE contributions (
	urn TEXT NOT NULL,
	contributor TEXT NOT NULL,
	rank INTEGER NOT NULL,
	found_hash TEXT,
	confidence FLOAT NOT NULL,
	document TEXT,
	at TEXT NOT NULL,
	checksum BIGINT,
	PRIMARY KEY (urn, contributor)
);
CREATE INDEX contributions_by_contributor ON contributions (contributor);
CREATE TABLE edge_contributions (
	edge_key TEXT NOT NULL,
	contributor TEXT NOT NULL,
	upstream_urn TEXT NOT NULL,
	downstream_urn TEXT NOT NULL,
	document TEXT NOT NULL,
	at TEXT NOT NULL,
	checksum BIGINT,
	PRIMARY KEY (edge_key, contributor)
);
CREATE INDEX edge_contributions_by_contributor ON edge_contributions (contributor);
CREATE TABLE scan_marks (
	source TEXT NOT NULL,
	mark TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (source, mark)
);
CREATE TABLE configured_sources (
	settings TEXT NOT NULL,
	contributor TEXT NOT NULL,
	PRIMARY KEY (settings, contributor)
);
CREATE INDEX datasets_by_contributor ON datasets (contributor);
CREATE TABLE observations (
	urn TEXT NOT NULL,
	kind TEXT NOT NULL,
	contributor TEXT NOT NULL,
	sequence INTEGER NOT NULL,
	at TEXT NOT NULL,
	document BLOB,
	checksum BIGINT,
	PRIMARY KEY (urn, kind, contributor, sequence)
);
CREATE TABLE leases (
	operation TEXT NOT NULL,
	scope TEXT NOT NULL,
	fence BIGINT NOT NULL,
	host TEXT,
	pid BIGINT,
	machine TEXT,
	clock TEXT,
	token TEXT,
	purpose TEXT,
	acquired_at TEXT,
	seconds DOUBLE,
	heartbeat_at DOUBLE,
	expires_at DOUBLE,
	PRIMARY KEY (operation, scope)
);
INSERT INTO alembic_version VALUES ('0010');
