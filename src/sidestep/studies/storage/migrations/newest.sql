CREATE TABLE sidestep_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT sidestep_schema_pkc PRIMARY KEY (version_num)
);

CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	status TEXT NOT NULL, 
	config TEXT NOT NULL, 
	head_seq INTEGER NOT NULL, 
	head_hash TEXT NOT NULL, 
	updated TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);

CREATE INDEX studies_by_change ON studies (status, updated DESC, name);

CREATE TABLE events (
	study_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	ticket INTEGER, 
	"key" TEXT, 
	outcome TEXT, 
	body TEXT NOT NULL, 
	at TEXT NOT NULL, 
	code TEXT NOT NULL, 
	actor_digest TEXT NOT NULL, 
	reason_digest TEXT, 
	prev_hash TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (study_id, seq), 
	FOREIGN KEY(study_id) REFERENCES studies (id)
);

CREATE UNIQUE INDEX events_key ON events (study_id, "key");

CREATE UNIQUE INDEX events_settled ON events (study_id, ticket, coalesce(outcome, '')) WHERE kind IN ('answered', 'withdrawn');

CREATE INDEX events_ticket ON events (study_id, ticket);

CREATE TABLE texts (
	study_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	actor TEXT, 
	actor_salt TEXT, 
	reason TEXT, 
	reason_salt TEXT, 
	PRIMARY KEY (study_id, seq), 
	FOREIGN KEY(study_id, seq) REFERENCES events (study_id, seq)
)
 WITHOUT ROWID

;

CREATE TABLE blobs (
	hash TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (hash)
);

CREATE TABLE snapshots (
	study_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	policy TEXT NOT NULL, 
	state TEXT NOT NULL, 
	PRIMARY KEY (study_id, seq), 
	FOREIGN KEY(study_id, seq) REFERENCES events (study_id, seq)
);

CREATE TRIGGER events_no_update BEFORE UPDATE ON events  BEGIN SELECT RAISE(ABORT, 'the record only grows: no UPDATE of events'); END;

CREATE TRIGGER events_no_delete BEFORE DELETE ON events  BEGIN SELECT RAISE(ABORT, 'the record only grows: no DELETE of events'); END;

CREATE TRIGGER blobs_no_update BEFORE UPDATE ON blobs  BEGIN SELECT RAISE(ABORT, 'the record only grows: no UPDATE of blobs'); END;

CREATE TRIGGER blobs_no_delete BEFORE DELETE ON blobs  BEGIN SELECT RAISE(ABORT, 'the record only grows: no DELETE of blobs'); END;

CREATE TRIGGER texts_no_delete BEFORE DELETE ON texts  BEGIN SELECT RAISE(ABORT, 'the record only grows: no DELETE of texts'); END;

CREATE TRIGGER texts_no_update BEFORE UPDATE ON texts WHEN 
        NEW.study_id <> OLD.study_id OR NEW.seq <> OLD.seq
        OR NOT ((NEW.actor IS NULL AND NEW.actor_salt IS NULL)
                OR COALESCE(NEW.actor = OLD.actor AND NEW.actor_salt = OLD.actor_salt, FALSE))
        OR NOT ((NEW.reason IS NULL AND NEW.reason_salt IS NULL)
                OR COALESCE(NEW.reason = OLD.reason AND NEW.reason_salt = OLD.reason_salt, FALSE))
     BEGIN SELECT RAISE(ABORT, 'the record only grows: no UPDATE of texts'); END;

CREATE TRIGGER studies_no_delete BEFORE DELETE ON studies  BEGIN SELECT RAISE(ABORT, 'the record only grows: no DELETE of studies'); END;

CREATE TRIGGER studies_no_update BEFORE UPDATE ON studies WHEN 
        NEW.id <> OLD.id OR NEW.name <> OLD.name OR NEW.config <> OLD.config
        OR NEW.head_seq <= OLD.head_seq
     BEGIN SELECT RAISE(ABORT, 'the record only grows: no UPDATE of studies'); END;

CREATE TABLE people (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	password TEXT NOT NULL, 
	stamp TEXT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);

CREATE TABLE tokens (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	created TEXT NOT NULL, 
	expires TEXT, 
	revoked TEXT, 
	"key" TEXT, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);

CREATE TABLE grants (
	holder TEXT NOT NULL, 
	study TEXT NOT NULL, 
	role TEXT NOT NULL, 
	PRIMARY KEY (holder, study, role)
);

CREATE INDEX grants_by_study ON grants (study);

CREATE TABLE links (
	id TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	study TEXT NOT NULL, 
	ticket INTEGER NOT NULL, 
	label TEXT NOT NULL, 
	created TEXT NOT NULL, 
	expires TEXT NOT NULL, 
	revoked TEXT, 
	PRIMARY KEY (id)
);

CREATE INDEX links_by_study ON links (study, ticket);

CREATE TABLE changes (
	id TEXT NOT NULL, 
	at TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE TABLE secrets (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TRIGGER changes_no_update BEFORE UPDATE ON changes BEGIN SELECT RAISE(ABORT, 'the record only grows: no UPDATE of changes'); END;

CREATE TRIGGER changes_no_delete BEFORE DELETE ON changes BEGIN SELECT RAISE(ABORT, 'the record only grows: no DELETE of changes'); END;
