start(embeddedSource());
