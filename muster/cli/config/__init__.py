"""`muster config`: Muster's configuration from what others have.

``config``           its flags and exit codes
``volcanofile``      a configuration of Volcano's scheduler as settings that know their places
``volcanosettings``  what Muster makes of each setting: its own configuration, and a line per other
``volcanoplugins``   actions, plugins and arguments of Volcano, and what Muster does instead
``volcanoscoring``   weights of Volcano's plugins as Muster's section ``scoring``
"""
