BEGIN TRANSACTION;
CREATE TABLE blobs (
	hash TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (hash)
);
INSERT INTO "blobs" VALUES('0473ef2dc0d324ab659d3580c1134e9d812035905c4781fdd6d529b0c6860e13','["a","b"]');
CREATE TABLE changes (
	id TEXT NOT NULL, 
	at TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
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
INSERT INTO "events" VALUES(1,1,'created',NULL,'create',NULL,'{"config":{"aim":"within","candidates":"0473ef2dc0d324ab659d3580c1134e9d812035905c4781fdd6d529b0c6860e13"},"name":"pilot","seed":7}','2026-01-01T09:07:00.000000+00:00','0.1.0','2156f721671a8cffaf085f019420757a7fcf8fb77ca2a67595bb65f71e12ee05',NULL,'0000000000000000000000000000000000000000000000000000000000000000','44976f9371eed079dfac4f88872d3a6109a64d52257e6f29ca94a9ef9c5c186c');
INSERT INTO "events" VALUES(1,2,'asked',2,'ask-1',NULL,'{"give":{"lisinopril":40.0},"measure":"sodium"}','2026-01-01T09:14:00.000000+00:00','0.1.0','588e6611f364f5fd08a1d44eb6960394b738a4f2dfb8b96f8e540b3ff4933c6a',NULL,'44976f9371eed079dfac4f88872d3a6109a64d52257e6f29ca94a9ef9c5c186c','1d1fecb174091802f17d7bd4b46c215b7ad0a8a98fd8ca021884bd2fad895080');
INSERT INTO "events" VALUES(1,3,'answered',2,'tell-1','sodium','{"value":1380.0}','2026-01-01T09:21:00.000000+00:00','0.1.0','b5cef12ccfedf4fb427b8ed6b6557f6a4df8038e70e306707a323e31ecaf4504',NULL,'1d1fecb174091802f17d7bd4b46c215b7ad0a8a98fd8ca021884bd2fad895080','1d73df4607757fa15d74508719a5f890c8ce5d60c58ce00aac10b93970650649');
INSERT INTO "events" VALUES(1,4,'corrected',2,NULL,'sodium','{"is":138.0,"was":1380.0}','2026-01-01T09:28:00.000000+00:00','0.1.0','ac4be3f2afe2c3d0cd9ef70311524889a25f0e2babb4ab1faacc55636880232c','5409fab91130cd8ed4fec012aec97e4f07b7496a07555863498563711585d637','1d73df4607757fa15d74508719a5f890c8ce5d60c58ce00aac10b93970650649','344bfa219aa4a41465f37ba2ea96f509d74235d62a2d641de31de66c6e0862ef');
INSERT INTO "events" VALUES(1,5,'asked',5,'ask-2',NULL,'{"give":{"lisinopril":30.0},"measure":"potassium"}','2026-01-01T09:35:00.000000+00:00','0.1.0','b9faf6b5d522e1dbf383166fd4d52b06e875ff9314fc823aab2f1ba75ad45cea',NULL,'344bfa219aa4a41465f37ba2ea96f509d74235d62a2d641de31de66c6e0862ef','1f739cd19ca12939cc61f6d7e6c1aaa15f536f7f10962e3c2ec8b0604c114662');
INSERT INTO "events" VALUES(1,6,'withdrawn',5,NULL,NULL,'{}','2026-01-01T09:42:00.000000+00:00','0.1.0','a1b316391f03cc24e79ec3595004ea393e35329772505c058d20d466b9005cd4','efb115a7cb195ebf12d3a4ca740fe8fdc158d64fbf895f194f1eca5421b8d397','1f739cd19ca12939cc61f6d7e6c1aaa15f536f7f10962e3c2ec8b0604c114662','12cc7655d3bed4a9bc30cb0e7c7d6c198841a54f3e109798fdfa46eb9fb56fed');
INSERT INTO "events" VALUES(1,7,'accepted',2,NULL,NULL,'{}','2026-01-01T09:49:00.000000+00:00','0.1.0','adc7a6fc58a63d96f758c6a7a7223acda65eb985603a646a1e2917b93e486181',NULL,'12cc7655d3bed4a9bc30cb0e7c7d6c198841a54f3e109798fdfa46eb9fb56fed','c18a092bfa3e2bb0ce454be073757ea355f4637e3f6d9a8af3defee966e4f03c');
CREATE TABLE grants (
	holder TEXT NOT NULL, 
	study TEXT NOT NULL, 
	role TEXT NOT NULL, 
	PRIMARY KEY (holder, study, role)
);
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
CREATE TABLE people (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	password TEXT NOT NULL, 
	stamp TEXT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
CREATE TABLE secrets (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE sidestep_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT sidestep_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "sidestep_schema" VALUES('0002');
CREATE TABLE snapshots (
	study_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	policy TEXT NOT NULL, 
	state TEXT NOT NULL, 
	PRIMARY KEY (study_id, seq), 
	FOREIGN KEY(study_id, seq) REFERENCES events (study_id, seq)
);
INSERT INTO "snapshots" VALUES(1,7,'c18a092bfa3e2bb0ce454be073757ea355f4637e3f6d9a8af3defee966e4f03c','directed-thompson/1','{"kept":true}');
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
INSERT INTO "studies" VALUES(1,'pilot','open','{"aim":"within","candidates":"0473ef2dc0d324ab659d3580c1134e9d812035905c4781fdd6d529b0c6860e13"}',7,'c18a092bfa3e2bb0ce454be073757ea355f4637e3f6d9a8af3defee966e4f03c','2026-01-01T09:49:00.000000+00:00');
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
INSERT INTO "texts" VALUES(1,1,'ada','efb0aff040817f810922ddea951aa6a2',NULL,NULL);
INSERT INTO "texts" VALUES(1,2,'ada','48f750bd0dff78f2f7459c7b4f92301a',NULL,NULL);
INSERT INTO "texts" VALUES(1,3,'lab','ca753fa5d94549cf165515af7a7b96d4',NULL,NULL);
INSERT INTO "texts" VALUES(1,4,'ada','2e3f553729baf0dc1aaf430fd51f6d4f','a lost decimal point','8cea4299bd31415e94ffdd109b8ce8be');
INSERT INTO "texts" VALUES(1,5,'ada','3935d09caddb37c95bc39b6d83035a7d',NULL,NULL);
INSERT INTO "texts" VALUES(1,6,'ada','8ed95bb9a31d1daaa6c0c634e32aeec1','missed visit','1a9f371dd9837d221c6de8c83d422916');
INSERT INTO "texts" VALUES(1,7,'ada','10ca0f7842a2da8cdee5d2115b8b0cb7',NULL,NULL);
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
CREATE INDEX studies_by_change ON studies (status, updated DESC, name);
CREATE UNIQUE INDEX events_key ON events (study_id, "key");
CREATE UNIQUE INDEX events_settled ON events (study_id, ticket, coalesce(outcome, '')) WHERE kind IN ('answered', 'withdrawn');
CREATE INDEX events_ticket ON events (study_id, ticket);
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
CREATE INDEX grants_by_study ON grants (study);
CREATE INDEX links_by_study ON links (study, ticket);
CREATE TRIGGER changes_no_update BEFORE UPDATE ON changes BEGIN SELECT RAISE(ABORT, 'the record only grows: no UPDATE of changes'); END;
CREATE TRIGGER changes_no_delete BEFORE DELETE ON changes BEGIN SELECT RAISE(ABORT, 'the record only grows: no DELETE of changes'); END;
COMMIT;
